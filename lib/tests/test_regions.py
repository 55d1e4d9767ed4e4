"""Regions by name, their distances, light between them, and reading the catalogue."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from wanbench import regions, tables
from wanbench.errors import ParameterError
from wanbench.measure.experiments import Ping
from wanbench.measure.plan import make_plan, select_pairs
from wanbench.regions import CLOUDS, catalogue, distance_km, light_rtt_ms, region, select

NAMES = catalogue()["name"].tolist()


def test_over_a_hundred_regions_of_four_clouds():
    assert len(NAMES) > 200 and len(set(NAMES)) == len(NAMES)
    assert catalogue()["cloud"].value_counts().to_dict().keys() == set(CLOUDS)
    assert catalogue()["cloud"].value_counts().min() >= 39
    assert len(select(clouds=["aws", "gcp", "azure"])) == 151


def test_ibm_has_its_regions_and_the_data_centres_within_them():
    """The data centres of a region lie where the region does, as IBM's list of universal zones says."""
    codes = set(select(clouds=["ibm"])["code"])
    centres = {code for code in codes if re.fullmatch(r"[a-z]{3}\d\d", code)}
    assert codes - centres == {
        "au-syd", "br-sao", "ca-mon", "ca-tor", "eu-de", "eu-es", "eu-fr2", "eu-gb", "in-che", "in-mum", "jp-osa",
        "jp-tok", "us-east", "us-south",
    }  # fmt: skip
    zones = {
        "us-south": "dal10 dal12 dal13 dal14", "br-sao": "sao01 sao04 sao05", "ca-tor": "tor01 tor04 tor05",
        "us-east": "wdc04 wdc06 wdc07", "eu-de": "fra02 fra04 fra05", "eu-gb": "lon04 lon05 lon06",
        "eu-es": "mad02 mad04 mad05", "au-syd": "syd01 syd04 syd05", "jp-tok": "tok02 tok04 tok05",
        "jp-osa": "osa21 osa22 osa23", "ca-mon": "mon04",
    }  # fmt: skip
    for code, within in zones.items():
        for centre in within.split():
            assert distance_km(f"ibm:{code}", f"ibm:{centre}") == 0
    assert 50 < distance_km("ibm:mon01", "ibm:ca-mon") < 120  # Drummondville


def test_regions_of_ibm_must_be_named():
    assert len(make_plan(experiments=[Ping(count=2)], regions=["ibm:us-south", "aws:eu-west-1"]).tests) == 2
    assert {name.split(":")[0] for pair in select_pairs() for name in pair} == {"aws", "azure", "gcp"}


def test_points_are_remembered_not_names():
    regions._geodesic_km.cache_clear()
    for one in ("ibm:dal05", "ibm:dal10", "ibm:us-south", "gcp:us-south1"):
        for other in ("ibm:lon02", "ibm:eu-gb", "aws:eu-west-2"):
            distance_km(one, other)
    assert regions._geodesic_km.cache_info().currsize == 1


def test_is_the_table_regions():
    pd.testing.assert_frame_equal(tables.validate("regions", catalogue()), catalogue())


def test_every_attribute_says_something():
    for one in map(region, NAMES):
        assert one.name == f"{one.cloud}:{one.code}"
        assert one.precision_km >= 10, f"{one.name}: no cloud says where it is as well as that"
        for field in dataclasses.fields(one):
            assert getattr(one, field.name) not in ("", None), f"{one.name} lacks {field.name}"


@pytest.fixture
def points(monkeypatch):
    """Put two made-up regions at the points given."""

    def put(one, other):
        made = {
            name: dataclasses.replace(region("aws:eu-west-1"), name=name, latitude_deg=at[0], longitude_deg=at[1])
            for name, at in (("one", one), ("other", other))
        }
        monkeypatch.setattr(regions, "_regions", lambda: made)

    return put


@pytest.mark.parametrize(
    "one, other, expected_km",
    [
        ((-41.32, 174.81), (40.96, -5.50), 19959.67926735382),  # Wellington to Salamanca, manual of GeographicLib
        ((-37.95103342, 144.42486789), (-37.65282114, 143.92649554), 54.972271),  # Flinders Peak to Buninyong, Vincenty
        ((0.0, 0.0), (0.0, 1.0), 111.31949079327358),  # a degree of the equator: pi a / 180, a = 6378.137 km
        ((90.0, 0.0), (0.0, 77.0), 10001.96572931),  # the quarter meridian of WGS-84
    ],
)
def test_geodesic_against_published_distances(points, one, other, expected_km):
    points(one, other)
    assert distance_km("one", "other") == pytest.approx(expected_km, abs=1e-6)
    assert distance_km("other", "one") == distance_km("one", "other")


def test_distances_are_symmetric_and_vanish_only_at_home():
    for one in NAMES[::10]:
        assert distance_km(one, one) == 0
        for other in NAMES[5::10]:
            assert distance_km(one, other) == distance_km(other, one)
            assert 0 <= distance_km(one, other) < 20003.94  # half a meridian


def test_light_takes_2_d_n_over_c():
    assert light_rtt_ms(299_792.458 / 1.468) == pytest.approx(2000, rel=1e-12)
    assert light_rtt_ms(100) == pytest.approx(0.979344, abs=1e-6)
    assert light_rtt_ms(0) == 0 and isinstance(light_rtt_ms(0), float)


def test_light_takes_arrays_and_series():
    np.testing.assert_allclose(light_rtt_ms(np.array([0, 100])), [0, 0.979344], atol=1e-6)
    np.testing.assert_allclose(light_rtt_ms([[100.0, np.nan]]), [[0.979344, np.nan]], atol=1e-6)
    series = light_rtt_ms(pd.Series([100], index=["x"]))
    assert list(series.index) == ["x"] and series["x"] == pytest.approx(0.979344, abs=1e-6)


@pytest.mark.parametrize("distance", [-1, float("inf"), np.array([1, -0.5]), pd.Series([-2.0])])
def test_light_fails_on_no_distance(distance):
    with pytest.raises(ParameterError, match="at least 0 km"):
        light_rtt_ms(distance)


@pytest.mark.parametrize(
    "wrong, near",
    [
        ("aws:eu-west1", "aws:eu-west-1"),
        ("eu-west-1", "aws:eu-west-1"),
        ("gcp:eu-west-1", "aws:eu-west-1"),
        ("AWS:EU-WEST-1", "aws:eu-west-1"),
        ("gcp:us-east1-b", "gcp:us-east1"),
        ("azure:west-europe", "azure:westeurope"),
        ("azure:useast", "azure:eastus"),
    ],
)
def test_unknown_region_names_near_ones(wrong, near):
    with pytest.raises(ParameterError, match=re.escape(near)) as caught:
        region(wrong)
    assert repr(wrong) in str(caught.value)
    assert set(re.findall(r"[a-z]+:[\w-]+", str(caught.value).split("such as")[1])) <= set(NAMES)


@pytest.mark.parametrize("wrong", ["", "zzzzzzzz", None, 3, ("aws", "eu-west-1")])
def test_unknown_region_unlike_any_says_what_a_name_is(wrong):
    with pytest.raises(ParameterError, match="<cloud>:<code>"):
        region(wrong)


def test_unknown_region_fails_everywhere():
    for call in (lambda: distance_km("aws:eu-west-1", "aws:eu-west-9"), lambda: select(names=["aws:eu-west-9"])):
        with pytest.raises(ParameterError, match="aws:eu-west-9"):
            call()


def test_names_given_twice_or_as_one_text_fail():
    with pytest.raises(ParameterError, match="holds gcp:us-east1 more than once"):
        select(names=["gcp:us-east1", "aws:eu-west-1", "gcp:us-east1"])
    for wrong in ("aws:eu-west-1", 3):
        with pytest.raises(ParameterError, match="allowed: a list of names"):
            select(names=wrong)


def test_select_by_cloud_and_name():
    assert set(select(clouds=["gcp", "azure"])["cloud"]) == {"gcp", "azure"}
    assert select()["name"].tolist() == NAMES
    names = ["gcp:us-east1", "aws:us-east-1", "gcp:asia-east1"]
    assert select(names=names)["name"].tolist() == names
    chosen = select(["gcp"], names)
    assert chosen["name"].tolist() == names[::2] and chosen.index.tolist() == [0, 1]
    assert select(names=[]).empty
    with pytest.raises(ParameterError, match="clouds is 'oci'; allowed: 'aws', 'gcp', 'azure', 'ibm'"):
        select(clouds=["oci"])


def test_catalogue_is_a_copy():
    frame = catalogue()
    frame["latitude_deg"] = 0.0
    assert catalogue()["latitude_deg"].abs().min() > 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        region("aws:eu-west-1").latitude_deg = 0.0


def test_every_region_of_the_catalogue_is_valid():
    frame = pd.DataFrame([vars(region(name)) for name in catalogue()["name"]])
    texts = frame[["cloud", "code", "display_name", "city", "country", "source"]]
    assert frame["name"].is_unique and set(frame["cloud"]) == set(CLOUDS)
    assert frame["code"].str.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*").all()
    assert (texts.map(str.strip) == texts).all(axis=None) and (texts != "").all(axis=None)
    assert frame["latitude_deg"].between(-90, 90).all() and frame["longitude_deg"].between(-180, 180).all()
    assert frame["precision_km"].between(1, 2000).all()
