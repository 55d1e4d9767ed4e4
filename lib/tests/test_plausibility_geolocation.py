"""Where a region may be, by its round trips."""

import numpy as np
import pandas as pd
import pytest
from simulations import clean_tables, planted_faults

from wanbench.read import plausibility
from wanbench.read.plausibility.places import EARTH_RADIUS_KM, cap, great_circle_km, locate, position
from wanbench.regions import LIGHT_RTT_MS_PER_KM, catalogue


def landmarks(rtts, places):
    frame = pd.DataFrame(places, columns=["region", "latitude_deg", "longitude_deg"])
    return frame.assign(precision_km=0.0, rtt_ms=np.asarray(rtts, dtype=float))


def test_one_disc_has_the_area_of_its_cap():
    area = locate("x", landmarks([20.0], [("a", 50.0, 8.0)]))
    radius = 20.0 / LIGHT_RTT_MS_PER_KM
    exact = 2 * np.pi * EARTH_RADIUS_KM**2 * (1 - np.cos(radius / EARTH_RADIUS_KM))
    assert area.area_km2 == pytest.approx(exact, rel=0.02)
    assert area.radius_km == pytest.approx(radius, rel=0.02)
    assert (area.latitude_deg, area.longitude_deg) == pytest.approx((50.0, 8.0), abs=0.3)


def test_the_true_place_lies_in_the_area_and_shrinks_it():
    rng = np.random.default_rng(0)
    known = catalogue()
    for _ in range(10):
        own, *others = rng.choice(len(known), 15, replace=False)
        there, here = known.iloc[others], known.iloc[own]
        away = great_circle_km(here.latitude_deg, here.longitude_deg, there.latitude_deg, there.longitude_deg)
        rtt = away * LIGHT_RTT_MS_PER_KM * rng.uniform(1.01, 2, len(away)) + 0.5
        points = there[["name", "latitude_deg", "longitude_deg"]].itertuples(index=False, name=None)
        area = locate("x", landmarks(rtt, list(points)))
        assert area.allows(here.latitude_deg, here.longitude_deg)[0]
        smallest = locate("x", landmarks([rtt.min()], [("a", 0.0, 0.0)]))
        assert area.area_km2 <= smallest.area_km2 * 1.05


def test_discs_without_a_common_point_allow_no_place():
    area = locate("x", landmarks([1.0, 1.0], [("sydney", -33.9, 151.2), ("london", 51.5, -0.1)]))
    assert area.empty and area.area_km2 == 0


def test_caps_are_filled_evenly():
    latitude, longitude = cap(70.0, 179.0, 3000.0)
    away = great_circle_km(70.0, 179.0, latitude, longitude)
    assert away.max() == pytest.approx(3000.0)
    half = EARTH_RADIUS_KM * np.arccos((1 + np.cos(3000.0 / EARTH_RADIUS_KM)) / 2)
    assert (away < half).mean() == pytest.approx(0.5, abs=0.01)
    assert position(-1.0, 2.0) == "1.00 S 2.00 E"


def test_two_moved_regions_are_both_named():
    made = clean_tables.clean(11, form="grid", n_regions=30, invented=True)
    first = planted_faults.swapped(made, np.random.default_rng(1))
    second = next(
        planted
        for seed in range(2, 20)
        if (planted := planted_faults.wrong_sign(first.tables, np.random.default_rng(seed))).region != first.region
    )
    flags = plausibility.check(second.tables)
    named = flags[flags.scope == "region"].set_index("region").cause.to_dict()
    assert named == {first.region: first.cause, second.region: second.cause}
