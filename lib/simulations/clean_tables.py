"""Simulate tables without faults, to count false alarms of the plausibility rules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench import regions as catalogue_of_regions
from wanbench import tables as declared
from wanbench.checks import check_choice
from wanbench.read.plausibility.places import EARTH_RADIUS_KM, destination, great_circle_km
from wanbench.regions import LIGHT_RTT_MS_PER_KM

MIN_REGIONS = 8
MAX_REGIONS = 46
"""The number of regions in the survey of 2022."""
SLACK = 1.007
"""Factor that keeps RTTs above light: distances on the mean sphere differ from the ellipsoid's by at most 0.6 %."""
START = pd.Timestamp("2026-01-05T00:00:00Z")


def clean(
    seed: int, *, form: str | None = None, n_regions: int | None = None, invented: bool = False
) -> dict[str, pd.DataFrame]:
    """
    Return tables of a measurement without faults.

    Regions are drawn from the catalogue, and their hosts are anywhere within the precision of its coordinates. The RTT
    of a pair of regions is the RTT of light over their distance, times an inflation between 1.2 and 2.5, plus the last
    miles. The inflation has effects of regions and of pairs; one pair in fifty also takes a detour, which is 1.3 to 2.2
    times as long. Each measurement adds queues with a Pareto tail (index 1.5 to 3). Both directions are measured one to
    three times, at different times; up to 30 % of the tests are missing.

    Parameters
    ----------
    form : str, optional
        "pings" (summaries with percentiles and times), "grid" (minimum, mean, maximum and spread, no times),
        "survey" (mean RTT and a transfer per pair), "lab" (echoes and transfers over emulated links). Default:
        drawn.
    n_regions : int, optional
        Default: drawn from 8 to 46.
    invented : bool
        Give regions names that are not in the catalogue, so that only table `regions` has their coordinates.
    """
    rng = np.random.default_rng(seed)
    form = form if form is not None else list(FORMS)[rng.integers(len(FORMS))]
    make = FORMS[check_choice("form", form, FORMS)]
    n_regions = int(rng.integers(MIN_REGIONS, MAX_REGIONS + 1)) if n_regions is None else n_regions
    places = catalogue_of_regions.catalogue()
    places = places.iloc[np.sort(rng.choice(len(places), n_regions, replace=False))].reset_index(drop=True)
    if invented:
        places["name"] = places.cloud + [f":place-{k:02d}" for k in range(len(places))]
    pairs = _pairs(places, rng)
    tests = _tests(pairs, rng, linked=form == "lab")
    return make(tests, pairs, rng) | {"regions": places}


def _pairs(places: pd.DataFrame, rng) -> pd.DataFrame:
    """Return all ordered pairs with the RTT of their path, which is the same in both directions."""
    latitude, longitude = _moved(places, rng)
    first, second = np.triu_indices(len(places), 1)
    distance = great_circle_km(latitude[first], longitude[first], latitude[second], longitude[second])
    region, pair = rng.normal(0, 0.08, len(places)), rng.normal(0, 0.15, len(first))
    inflation = np.clip(1.55 * np.exp(region[first] + region[second] + pair), 1.2, 2.5)
    detour = np.where(rng.random(len(first)) < 0.02, rng.uniform(1.3, 2.2, len(first)), 1.0)
    last_mile = rng.uniform(0.1, 1.5, len(places))
    path = distance * SLACK * LIGHT_RTT_MS_PER_KM * inflation * detour + last_mile[first] + last_mile[second]
    names = places.name.to_numpy()
    ends = (np.r_[first, second], np.r_[second, first])
    return pd.DataFrame({"from_region": names[ends[0]], "to_region": names[ends[1]], "path_ms": np.r_[path, path]})


def _moved(places: pd.DataFrame, rng) -> tuple[np.ndarray, np.ndarray]:
    """Draw latitudes and longitudes of hosts within the precision of each place."""
    latitude, longitude = np.radians(places.latitude_deg), np.radians(places.longitude_deg)
    angle = places.precision_km * np.sqrt(rng.random(len(places))) / EARTH_RADIUS_KM
    bearing = rng.uniform(0, 2 * np.pi, len(places))
    moved = destination(latitude, longitude, angle, bearing)
    return moved[0].to_numpy(), moved[1].to_numpy()


def _tests(pairs: pd.DataFrame, rng, *, linked: bool) -> pd.DataFrame:
    """Draw the tests in the order of their times."""
    repeats = int(rng.integers(1, 4))
    tests = pd.concat([pairs] * repeats, ignore_index=True)
    tests = tests[rng.random(len(tests)) >= rng.uniform(0, 0.3)]
    tests = tests.sample(frac=1, random_state=int(rng.integers(1 << 31))).reset_index(drop=True)
    at = np.cumsum(rng.exponential(20, len(tests)) + 1).round()
    names = [f"{k:04d}-{a}-{b}" for k, (a, b) in enumerate(zip(tests.from_region, tests.to_region, strict=True))]
    context = {"run_id": None, "test_id": None, "attempt": None, "source_file": "simulated.csv"}
    context |= {"run_id": "simulated", "test_id": names, "attempt": 1} if linked else {}
    return tests.assign(started_at_utc=START + pd.to_timedelta(at, unit="s"), at_s=at, **context)


def _echoes(tests: pd.DataFrame, rng, count: int, noise: float) -> np.ndarray:
    """Draw RTTs in ms, of shape (tests, count): path + current load + queue of each echo."""
    n = len(tests)
    load = rng.pareto(rng.uniform(2, 3), (n, 1)) * rng.uniform(0.05, 1) * noise
    queue = rng.pareto(rng.uniform(1.5, 3), (n, count)) * rng.uniform(0.02, 0.5) * noise
    return tests.path_ms.to_numpy()[:, None] + load + queue


def _table(name: str, tests: pd.DataFrame, **columns) -> pd.DataFrame:
    names = declared.table(name).names
    frame = tests[[column for column in names if column in tests.columns]].assign(**columns)
    absent = [column for column in names if column not in frame.columns]
    return declared.validate(name, frame.assign(**dict.fromkeys(absent)))


def _pings(tests, pairs, rng):
    count = int(rng.choice([5, 10, 20, 100]))
    rtt = _echoes(tests, rng, count, 1.0)
    lost = rng.binomial(count, rng.choice([0, 0.01]), len(tests))
    places = int(rng.choice([1, 2, 3]))
    columns = {f"p{p}_rtt_ms": np.percentile(rtt, p, axis=1).round(places) for p in (90, 95, 99)}
    columns |= {
        "n_sent": count,
        "n_lost": np.minimum(lost, count - 1),
        "min_rtt_ms": rtt.min(axis=1).round(places),
        "median_rtt_ms": np.median(rtt, axis=1).round(places),
        "mean_rtt_ms": rtt.mean(axis=1).round(places),
        "max_rtt_ms": rtt.max(axis=1).round(places),
        "sd_rtt_ms": rtt.std(axis=1, ddof=int(rng.integers(2))).round(places),
    }
    return {"pings": _table("pings", tests, **columns)}


def _grid(tests, pairs, rng):
    rtt = _echoes(tests, rng, int(rng.choice([5, 10, 20])), 1.0)
    columns = {
        "min_rtt_ms": rtt.min(axis=1).round(3),
        "mean_rtt_ms": rtt.mean(axis=1).round(3),
        "max_rtt_ms": rtt.max(axis=1).round(3),
        "sd_rtt_ms": rtt.std(axis=1).round(3),
        "started_at_utc": None,
    }
    return {"pings": _table("pings", tests, **columns)}


def _rates(tests, rng, capacity, window):
    """Draw throughputs (bit/s) of one stream, limited by capacity or window and reduced by other traffic."""
    limit = np.minimum(capacity, 8000 * window / tests.path_ms)
    return limit * np.clip(rng.beta(4, 1.5, len(tests)), 0.02, 1)


def _survey(tests, pairs, rng):
    rtt = _echoes(tests, rng, 5, 1.0)
    pings = _table("pings", tests, mean_rtt_ms=rtt.mean(axis=1).round(3), n_sent=5)
    window = 2 ** rng.uniform(18, 24)
    rate = _rates(tests, rng, 10 ** rng.uniform(8, 10), window)
    duration = 10 + rng.exponential(0.05, len(tests)).round(2)
    block = int(rng.choice([1, 1460, 131072]))
    carried = np.maximum(np.rint(rate * duration / 8 / block), 1) * block
    measured = carried * 8 / duration
    rounding = rng.choice([1.0, 1e5, 1e6])
    columns = {
        "direction": "forward",
        "protocol": "TCP",
        "streams": 1,
        "duration_s": duration,
        "bytes": carried,
        "throughput_bps": np.maximum((measured / rounding).round(), 1) * rounding,
        "window_bytes": int(window) if rng.random() < 0.3 else None,
    }
    if rng.random() < 0.3:
        columns |= {"bytes": None, "duration_s": None}
    return {"pings": pings, "transfers": _table("transfers", tests, **columns)}


def _lab(tests, pairs, rng):
    tests = tests.iloc[: min(len(tests), 400)].reset_index(drop=True)
    rate = float(rng.choice([5e7, 2e8, 1e9]))
    count = 20
    rtt = _echoes(tests, rng, count, 0.2).round(3)
    repeated = tests.loc[np.repeat(tests.index, count)].reset_index(drop=True)
    sequence = np.tile(np.arange(1, count + 1), len(tests))
    echoes = _table(
        "echoes",
        repeated,
        sequence=sequence,
        received_at_s=START.timestamp() + repeated.at_s + 0.2 * sequence + rtt.ravel() / 1000,
        rtt_ms=rtt.ravel(),
        lost=False,
        duplicate=False,
        responder="10.0.0.1",
    )
    measured = _rates(tests, rng, rate * 0.96, 4e6)
    carried = np.rint(measured * 10 / 8)
    transfers = _table(
        "transfers",
        tests,
        direction="forward",
        protocol="TCP",
        streams=1,
        duration_s=10.0,
        bytes=carried,
        throughput_bps=carried * 8 / 10,
        min_rtt_ms=rtt.min(axis=1),
        mean_rtt_ms=rtt.mean(axis=1) + 5,
        max_rtt_ms=rtt.max(axis=1) + 20,
    )
    links = pairs.assign(
        run_id="simulated",
        delay_ms=pairs.path_ms / 2,
        jitter_ms=0.0,
        loss=0.0,
        rate_bps=rate,
        queue_bytes=int(rate / 80),
    ).drop(columns="path_ms")
    return {"echoes": echoes, "transfers": transfers, "links": declared.from_rows("links", links.to_dict("records"))}


FORMS = {"pings": _pings, "grid": _grid, "survey": _survey, "lab": _lab}
"""The functions that make the tables of each form."""
