"""The catalogue is complete, and its places are where countries, other lists and measurements say."""

import importlib.resources
import re
from pathlib import Path

import botocore.loaders
import numpy as np
import pandas as pd
import pytest

from wanbench.regions import CLOUDS, catalogue, distance_km, light_rtt_ms, region, select

SHARED = Path(__file__).parents[3] / "shared" / "data"
NAMES = catalogue()["name"].tolist()

# South, north, west, east in degrees: hand-drawn boxes around each country, without islands far off.
BOXES = {
    "Australia": (-44.0, -10.0, 113.0, 154.0),
    "Austria": (46.3, 49.1, 9.5, 17.2),
    "Bahrain": (25.5, 26.4, 50.3, 50.9),
    "Belgium": (49.4, 51.6, 2.5, 6.5),
    "Brazil": (-34.0, 5.5, -74.0, -34.5),
    "Canada": (41.6, 83.0, -141.0, -52.0),
    "Chile": (-56.0, -17.4, -76.0, -66.4),
    "China": (18.0, 53.6, 73.4, 135.0),
    "Denmark": (54.5, 57.8, 8.0, 12.8),
    "Finland": (59.7, 70.1, 20.5, 31.6),
    "France": (42.3, 51.1, -5.0, 8.3),
    "Germany": (47.2, 55.1, 5.8, 15.1),
    "Hong Kong": (22.1, 22.6, 113.8, 114.5),
    "India": (6.7, 35.6, 68.1, 97.4),
    "Indonesia": (-11.1, 6.0, 95.0, 141.1),
    "Ireland": (51.4, 55.4, -10.6, -6.0),
    "Israel": (29.4, 33.4, 34.2, 35.7),
    "Italy": (36.6, 47.1, 6.6, 18.6),
    "Japan": (30.9, 45.6, 129.4, 145.9),
    "Malaysia": (0.8, 7.4, 99.6, 119.3),
    "Mexico": (14.5, 32.8, -117.2, -86.7),
    "Netherlands": (50.7, 53.6, 3.3, 7.3),
    "New Zealand": (-47.4, -34.3, 166.4, 178.6),
    "Norway": (57.9, 71.2, 4.6, 31.1),
    "Poland": (49.0, 54.9, 14.1, 24.2),
    "Qatar": (24.4, 26.2, 50.7, 51.7),
    "Saudi Arabia": (16.3, 32.2, 34.5, 55.7),
    "Singapore": (1.15, 1.48, 103.6, 104.1),
    "South Africa": (-34.9, -22.1, 16.4, 32.9),
    "South Korea": (33.1, 38.7, 125.8, 129.6),
    "Spain": (36.0, 43.8, -9.3, 3.4),
    "Sweden": (55.3, 69.1, 11.0, 24.2),
    "Switzerland": (45.8, 47.9, 5.9, 10.5),
    "Taiwan": (21.9, 25.4, 120.0, 122.1),
    "Thailand": (5.6, 20.5, 97.3, 105.7),
    "United Arab Emirates": (22.6, 26.2, 51.5, 56.4),
    "United Kingdom": (49.9, 60.9, -8.2, 1.8),
    "United States": (24.5, 49.4, -124.8, -66.9),
}

# The same for the state or province that the cloud, or its own announcement, names.
STATES = {
    "Arizona": (31.3, 37.0, -114.9, -109.0),
    "California": (32.5, 42.1, -124.5, -114.1),
    "Illinois": (36.9, 42.6, -91.6, -87.4),
    "Iowa": (40.3, 43.6, -96.7, -90.1),
    "Nevada": (35.0, 42.1, -120.1, -114.0),
    "Ohio": (38.4, 42.0, -84.9, -80.5),
    "Oregon, on the Columbia River": (45.4, 46.2, -121.8, -118.5),
    "South Carolina": (32.0, 35.3, -83.4, -78.5),
    "Texas": (25.8, 36.6, -106.7, -93.5),
    "Utah": (36.9, 42.1, -114.1, -109.0),
    "Virginia, north": (38.3, 39.5, -78.5, -77.0),
    "Virginia, south": (36.5, 37.2, -79.5, -77.5),
    "Washington": (45.5, 49.1, -124.9, -116.9),
    "Wyoming": (40.9, 45.1, -111.1, -104.0),
    "Alberta": (48.9, 60.1, -120.1, -109.9),
    "Ontario, south": (42.0, 45.0, -83.0, -76.0),
    "Quebec, south": (45.0, 48.0, -75.0, -70.0),
    "Querétaro": (20.0, 21.7, -100.7, -99.0),
    "São Paulo": (-25.4, -19.7, -53.2, -44.1),
    "Aragon": (39.8, 43.0, -2.2, 0.8),
    "Brandenburg": (51.3, 53.6, 11.2, 14.8),
    "New South Wales": (-37.6, -28.1, 140.9, 153.7),
    "Victoria": (-39.2, -33.9, 140.9, 150.1),
    "Ningxia": (35.2, 39.4, 104.2, 107.7),
    "Mälardalen": (58.8, 60.0, 15.5, 18.5),
}
IN_STATE = {
    "aws:ca-central-1": "Quebec, south",
    "aws:ca-west-1": "Alberta",
    "aws:cn-northwest-1": "Ningxia",
    "aws:eu-north-1": "Mälardalen",
    "aws:eu-south-2": "Aragon",
    "aws:eusc-de-east-1": "Brandenburg",
    "aws:mx-central-1": "Querétaro",
    "aws:sa-east-1": "São Paulo",
    "aws:us-east-1": "Virginia, north",
    "aws:us-east-2": "Ohio",
    "aws:us-gov-east-1": "Ohio",
    "aws:us-gov-west-1": "Oregon, on the Columbia River",
    "aws:us-west-1": "California",
    "aws:us-west-2": "Oregon, on the Columbia River",
    "gcp:northamerica-northeast1": "Quebec, south",
    "gcp:northamerica-northeast2": "Ontario, south",
    "gcp:northamerica-south1": "Querétaro",
    "gcp:southamerica-east1": "São Paulo",
    "gcp:us-central1": "Iowa",
    "gcp:us-east1": "South Carolina",
    "gcp:us-east4": "Virginia, north",
    "gcp:us-east5": "Ohio",
    "gcp:us-south1": "Texas",
    "gcp:us-west1": "Oregon, on the Columbia River",
    "gcp:us-west2": "California",
    "gcp:us-west3": "Utah",
    "gcp:us-west4": "Nevada",
    "azure:australiaeast": "New South Wales",
    "azure:australiasoutheast": "Victoria",
    "azure:brazilsouth": "São Paulo",
    "azure:canadacentral": "Ontario, south",
    "azure:canadaeast": "Quebec, south",
    "azure:centralus": "Iowa",
    "azure:eastus": "Virginia, north",
    "azure:eastus2": "Virginia, south",
    "azure:mexicocentral": "Querétaro",
    "azure:northcentralus": "Illinois",
    "azure:southcentralus": "Texas",
    "azure:usdodcentral": "Iowa",
    "azure:usdodeast": "Virginia, south",
    "azure:usgovarizona": "Arizona",
    "azure:usgovtexas": "Texas",
    "azure:usgovvirginia": "Virginia, south",
    "azure:westcentralus": "Wyoming",
    "azure:westus": "California",
    "azure:westus2": "Washington",
    "azure:westus3": "Arizona",
    "ibm:ca-mon": "Quebec, south",
    "ibm:ca-tor": "Ontario, south",
    "ibm:us-east": "Virginia, north",
    "ibm:us-south": "Texas",
} | {
    f"ibm:{code}": state
    for state, codes in {
        "California": "sjc01 sjc03 sjc04",
        "Ontario, south": "tor01 tor04 tor05",
        "Quebec, south": "mon01 mon04",
        "Querétaro": "mex01",
        "São Paulo": "sao01 sao04 sao05",
        "Texas": "dal01 dal05 dal06 dal07 dal08 dal09 dal10 dal12 dal13 dal14 hou02",
        "Virginia, north": "wdc01 wdc03 wdc04 wdc06 wdc07",
        "Washington": "sea01",
    }.items()
    for code in codes.split()
}


def inside(box, latitude_deg, longitude_deg):
    south, north, west, east = box
    return south <= latitude_deg <= north and west <= longitude_deg <= east


def shared(*parts):
    path = SHARED.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside this repository")
    return path


def test_sources_name_the_place_taken_and_vague_ones_are_not_precise():
    for one in map(region, NAMES):
        taken = (one.city, "Osasco", "Jurong West") if one.cloud == "gcp" else (one.city,)
        assert any(place.split(" ")[0] in one.source for place in taken), f"{one.name}: {one.source}"
        assert re.search(r"(AWS|Google|Microsoft|IBM|operator|region's name)", one.source), one.name
        if " only" in one.source or "name is the" in one.source:
            assert one.precision_km >= 50, f"{one.name}: {one.precision_km} km, yet {one.source}"


def test_aws_is_complete_and_named_as_aws_does():
    """Against the installed botocore, without the isolated partitions (aws-iso*), which nobody can enter."""
    partitions = botocore.loaders.Loader().load_data("endpoints")["partitions"]
    public = [one for one in partitions if not one["partition"].startswith("aws-iso")]
    assert {"aws", "aws-cn", "aws-us-gov"} <= {one["partition"] for one in public}
    expected = {code: about["description"] for one in public for code, about in one["regions"].items()}
    found = {one.code: one.display_name for one in map(region, NAMES) if one.cloud == "aws"}
    assert found == expected


def test_every_region_of_the_study_of_february_2022_is_known():
    results = pd.read_csv(shared("doit", "results_202202.csv"))
    locations = pd.read_csv(shared("doit", "locations.csv"))
    asked = set(locations["cloud"].str.lower() + ":" + locations["region"])
    tested = {
        f"{results[f'{end}_cloud'].str.lower()[i]}:{results[f'{end}_region'][i]}"
        for end in ("from", "to")
        for i in results.index
    }
    assert len(tested) == 45 and len(asked) == 53
    assert not (asked | tested) - set(NAMES)


def grid(name):
    """A grid of measurements over three clouds, Google's zones turned into their regions."""
    frame = pd.read_csv(shared("grids", name))
    for end in ("src_region", "dst_region"):
        frame[end] = frame[end].str.replace(r"^(gcp:.*)-[a-z]$", r"\1", regex=True)
    return frame


@pytest.mark.parametrize("name", ["skyplane_latency_2022-04-16.csv", "skyplane_profiles_throughput_2022-01-30.csv"])
def test_every_region_of_the_grids_is_known(name):
    frame = grid(name)
    asked = set(frame["src_region"]) | set(frame["dst_region"])
    assert len(asked) > 60 and not asked - set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_lies_in_its_country_and_state(name):
    one = region(name)
    assert inside(BOXES[one.country], one.latitude_deg, one.longitude_deg), one
    if name in IN_STATE:
        assert inside(STATES[IN_STATE[name]], one.latitude_deg, one.longitude_deg), one


def test_boxes_notice_swapped_and_sign_flipped_coordinates():
    """So that the test above means something: such errors leave the box, or stay within the precision."""
    missed = set()
    for one in map(region, NAMES):
        box = STATES[IN_STATE[one.name]] if one.name in IN_STATE else BOXES[one.country]
        moved_km = 2 * abs(one.longitude_deg) * 111 * np.cos(np.radians(one.latitude_deg))
        if (
            inside(box, one.longitude_deg, one.latitude_deg)
            or inside(box, -one.latitude_deg, one.longitude_deg)
            or (inside(box, one.latitude_deg, -one.longitude_deg) and moved_km > one.precision_km)
        ):
            missed.add(one.city)
    assert missed == {"Paris"}  # France straddles the meridian of Greenwich; distances below settle Paris


def test_each_country_and_state_in_the_tables_above_is_used():
    assert set(BOXES) == set(catalogue()["country"])
    assert set(STATES) == set(IN_STATE.values())
    american = select(clouds=CLOUDS)[lambda frame: frame["country"].isin(["United States", "Canada"])]
    assert set(american["name"]) <= set(IN_STATE)


def same_city():
    frame = catalogue()
    both = frame.merge(frame, on=["city", "country"], suffixes=("", "_other"))
    both = both[both["name"] < both["name_other"]]
    return both[["name", "name_other", "precision_km", "precision_km_other", "city"]].values.tolist()


def test_regions_of_one_city_lie_close_together():
    pairs = same_city()
    across = [pair for pair in pairs if pair[0].split(":")[0] != pair[1].split(":")[0]]
    assert len(across) > 50
    for one, other, precision_km, other_precision_km, city in pairs:
        apart_km = distance_km(one, other)
        assert apart_km < 60 and apart_km <= precision_km + other_precision_km, f"{one}, {other} in {city}"


def test_a_city_lies_in_one_country():
    assert catalogue().groupby("city")["country"].nunique().max() == 1


def zone_cities():
    """City to latitude and longitude, from the time zone database: another hand's list of coordinates."""
    text = (importlib.resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text("utf-8")
    cities = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        place, zone = line.split("\t")[1:3]
        signs = re.fullmatch(r"([+-])(\d\d)(\d\d)(\d\d)?([+-])(\d\d\d)(\d\d)(\d\d)?", place).groups(default="0")
        degrees = [
            (1 if signs[at] == "+" else -1) * sum(int(signs[at + 1 + i]) / 60**i for i in range(3)) for at in (0, 4)
        ]
        cities[zone.rpartition("/")[2].replace("_", " ")] = degrees
    return cities


def test_cities_agree_with_the_time_zone_database():
    pytest.importorskip("tzdata")
    cities = zone_cities() | {"Doha": zone_cities()["Qatar"], "Manama": zone_cities()["Bahrain"]}
    cities["São Paulo"] = cities["Sao Paulo"]
    checked = set()
    for one in map(region, NAMES):
        if one.city in cities and one.country != "Chile":
            latitude_deg, longitude_deg = cities[one.city]
            north_km = 111 * (one.latitude_deg - latitude_deg)
            east_km = 111 * (one.longitude_deg - longitude_deg) * np.cos(np.radians(latitude_deg))
            assert np.hypot(north_km, east_km) < 25, one
            checked.add(one.city)
    assert len(checked) >= 30


@pytest.mark.parametrize(
    "one, other, published_km",
    [
        ("azure:uksouth", "aws:eu-west-3", 344),  # London, Paris
        ("aws:ap-southeast-2", "aws:ap-southeast-4", 714),  # Sydney, Melbourne
        ("gcp:asia-northeast1", "gcp:asia-northeast2", 397),  # Tokyo, Osaka
        ("azure:northeurope", "aws:eu-west-2", 464),  # Dublin, London
        ("gcp:us-west2", "gcp:us-west4", 368),  # Los Angeles, Las Vegas
        ("aws:ca-central-1", "azure:canadacentral", 504),  # Montreal, Toronto
        ("azure:eastasia", "azure:southeastasia", 2586),  # Hong Kong, Singapore
        ("aws:sa-east-1", "azure:brazilsoutheast", 361),  # São Paulo, Rio de Janeiro
        ("aws:us-west-1", "azure:westus3", 987),  # San Jose, Phoenix
        ("aws:ap-south-1", "azure:centralindia", 119),  # Mumbai, Pune
        ("azure:southafricanorth", "aws:af-south-1", 1262),  # Johannesburg, Cape Town
        ("aws:me-central-1", "aws:me-south-1", 485),  # Dubai, Manama
    ],
)
def test_cities_are_as_far_apart_as_atlases_say(one, other, published_km):
    assert distance_km(one, other) == pytest.approx(published_km, rel=0.02)


def nobody_beat_light(frame):
    """Rows from, to, rtt_ms: none beats light in fibre between the nearest ends that precision allows."""
    for start, end, rtt_ms in frame.itertuples(index=False):
        slack_km = region(start).precision_km + region(end).precision_km
        floor_ms = light_rtt_ms(max(0.0, distance_km(start, end) - slack_km))
        assert rtt_ms >= floor_ms, f"{start} to {end} took {rtt_ms} ms, light {floor_ms:.1f} ms"
    return len(frame)


def test_no_rtt_of_the_study_of_february_2022_beats_light():
    frame = pd.read_csv(shared("doit", "results_202202.csv"))
    for end in ("from", "to"):
        frame[end] = frame[f"{end}_cloud"].str.lower() + ":" + frame[f"{end}_region"]
    assert nobody_beat_light(frame[["from", "to", "avgrtt"]]) > 2000


def test_no_rtt_of_the_grid_of_april_2022_beats_light():
    """
    Without the rows pinged from Google: some of them say 1 ms from Sydney to London where others of that pair
    say 263 ms. Of the rows pinged from the other clouds, to Google or elsewhere, none is impossible.
    """
    frame = grid("skyplane_latency_2022-04-16.csv")
    frame = frame[~frame["src_region"].str.startswith("gcp:")]
    assert nobody_beat_light(frame[["src_region", "dst_region", "min_rtt"]]) > 3000
