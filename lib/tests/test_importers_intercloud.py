"""Survey results in every form the tool has stored them, read from made-up rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wanbench import regions
from wanbench.errors import ParameterError, RawDataError
from wanbench.read import importers, ingest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "doit"
HEADER = "timestamp,run_id,from_cloud,from_region,to_cloud,to_region,bitrate_Bps,avgrtt,gcp_vm,aws_vm"
ROW = "2022-02-14T08:59:09Z,abcdef,GCP,us-east1,AWS,eu-west-2,13107200.0,91.605,e2-small,t3.nano"


def survey(folder, *lines, name="results.csv", **options):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return importers.read_survey(path, **options)


def test_one_row(tmp_path):
    found = survey(tmp_path, HEADER, ROW)
    [test] = found["tests"].to_dict("records")
    assert (test["run_id"], test["test_id"], test["attempt"]) == ("abcdef", "results.csv:2", 1)
    assert (test["from_region"], test["to_region"]) == ("gcp:us-east1", "aws:eu-west-2")
    assert (test["setting"], test["outcome"]) == ("e2-small to t3.nano", "done")
    assert test["started_at_utc"] == pd.Timestamp("2022-02-14T08:59:09Z")
    [ping] = found["pings"].to_dict("records")
    assert (ping["mean_rtt_ms"], ping["n_sent"]) == (91.605, 5)
    assert pd.isna(ping["n_lost"]) and np.isnan(ping["min_rtt_ms"])
    [transfer] = found["transfers"].to_dict("records")
    assert (transfer["bytes"], transfer["duration_s"], transfer["streams"]) == (13107200, 10, 1)
    assert transfer["throughput_bps"] == pytest.approx(13107200 * 8 / 10)
    assert (transfer["protocol"], transfer["direction"]) == ("TCP", "forward")
    assert len(found["unread"]) == 0 and "regions" not in found
    [source] = found["sources"].to_dict("records")
    assert source["title"] == "results.csv" and source["bytes"] == len(HEADER) + len(ROW) + 2


@pytest.mark.parametrize(
    ("bitrate", "rate", "size"),
    [("bytes in 10 s", 10_485_760, 13_107_200), ("bytes/s", 104_857_600, None), ("bit/s", 13_107_200, None)],
)
def test_three_readings_of_the_bitrate(tmp_path, bitrate, rate, size):
    [transfer] = survey(tmp_path, HEADER, ROW, bitrate=bitrate)["transfers"].to_dict("records")
    assert transfer["throughput_bps"] == transfer["sent_throughput_bps"] == rate
    assert transfer["bytes"] == size if size else pd.isna(transfer["bytes"])


def test_an_unknown_reading_names_those_allowed(tmp_path):
    with pytest.raises(ParameterError, match=r"'Mbit/s'; allowed: 'bytes in 10 s', 'bytes/s', 'bit/s'"):
        survey(tmp_path, HEADER, ROW, bitrate="Mbit/s")


OLDER = {
    "datetime and distance": (
        "datetime,run_id,from_cloud,from_region,to_cloud,to_region,bitrate_Bps,avgrtt,distance",
        "2022-01-23T14:41:38Z,abcd,GCP,us-east1,AWS,eu-west-2,13107200,91.605,6500.5",
    ),
    "blanks after commas, quotes, microseconds": (
        'timestamp, run_id, from_cloud, from_region, to_cloud, to_region, "bitrate_Bps", avgrtt',
        '2022-02-17T12:30:21.798332Z, abcd, GCP, us-east1, "AWS", eu-west-2, "13107200", 91.605',
    ),
    "no run": (
        "datetime,from_cloud,from_region,to_cloud,to_region,bitrate_Bps,avgrtt",
        "2022-01-13T14:38:14Z,GCP,us-east1,AWS,eu-west-2,12.5Mi,91.605",
    ),
    "pasted side by side": (
        ",".join(["datetime,run_id,from_cloud,from_region,to_cloud,to_region,bitrate_Bps,avgrtt"] * 3),
        ",".join(["2022-01-23T14:41:38Z,abcd,GCP,us-east1,AWS,eu-west-2,13107200,91.605"] * 3),
    ),
}


@pytest.mark.parametrize("form", OLDER)
def test_older_forms(tmp_path, form):
    found = survey(tmp_path, *OLDER[form])
    [pair] = ingest.summarise_pairs(found, rtt="mean").to_dict("records")
    assert (pair["from_region"], pair["to_region"]) == ("gcp:us-east1", "aws:eu-west-2")
    assert (pair["rtt_ms"], pair["throughput_bps"]) == (91.605, pytest.approx(10_485_760))
    assert found["tests"].setting.isna().all()
    assert found["tests"].run_id[0] == ("results.csv" if form == "no run" else "abcd")


def test_columns_that_repeat_must_agree(tmp_path):
    header, row = OLDER["pasted side by side"]
    found = survey(tmp_path, header, row, row.replace("91.605", "90", 1))
    assert len(found["tests"]) == 1
    assert found["unread"].expected.tolist() == ["avgrtt: the same in all its 3 columns"]


def test_json_lines(tmp_path):
    ends = {"from": {"cloud": "GCP", "region": "us-east1"}, "to": {"cloud": "AWS", "region": "eu-west-2"}}
    row = {"datetime": "2022-01-13T14:38:14Z", "run_id": "abcd", **ends, "bitrate_Bps": "13107200"}
    first, second = row | {"avgrtt": "91.605", "distance": 0.0}, row | {"avgrtt": ""}
    lines = [json.dumps(first) + json.dumps(second), "{broken", json.dumps(row | {"from": ["GCP"], "avgrtt": "1"})]
    found = survey(tmp_path, *lines, name="results.jsonl")
    assert found["tests"].test_id.tolist() == ["results.jsonl:1"] * 2, "two objects in one line"
    assert found["pings"].mean_rtt_ms.tolist() == [91.605] and len(found["transfers"]) == 2
    assert found["unread"].line_number.tolist() == [2, 3]


def test_bad_rows_cost_themselves_only(tmp_path):
    rows = {
        "2022-02-14,x,GCP,us-east1,AWS,eu-west-2,1,1,,": "timestamp: a time",
        "2022-02-14T08:59:09Z,x,GCP,us-east1,AWS,eu-west-2,432`0,1,,": "bitrate_Bps: a number from 0",
        "2022-02-14T08:59:09Z,x,GCP,us-east1,AWS,eu-west-2,1,-1,,": "avgrtt: a number from 0",
        "2022-02-14T08:59:09Z,x,GCP,us-east1,AWS,eu-west-2,1,1e999,,": "avgrtt: a number from 0",
        "2022-02-14T08:59:09Z,x,G CP,us-east1,AWS,eu-west-2,1,1,,": "from_cloud: a cloud",
        "2022-02-14T08:59:09Z,x,GCP,us-east1,AWS,../etc,1,1,,": "to_region: a region's code",
        "2022-02-14T08:59:09Z,x,GCP,us-east1": "10 fields, as in the header",
        '2022-02-14T08:59:09Z,"x,GCP,us-east1,AWS,eu-west-2,1,1,,': "fields whose quotes are closed",
    }
    found = survey(tmp_path, HEADER, *rows, ROW, "")
    assert len(found["tests"]) == len(found["pings"]) == 1
    assert found["unread"].line_number.tolist() == list(range(2, 2 + len(rows)))
    for expected, start in zip(found["unread"].expected, rows.values(), strict=True):
        assert expected.startswith(start)


def test_more_bytes_than_can_be_cost_their_row_only(tmp_path):
    short = ROW.replace("13107200.0", "143Mi")
    wrong = [ROW.replace("13107200.0", text) for text in ("9e18", "1e300", "9e9Ti")]
    found = survey(tmp_path, HEADER, *wrong, short, ROW)
    assert found["transfers"].bytes.tolist() == [143 * 2**20, 13107200]
    assert found["unread"].line_number.tolist() == [2, 3, 4]
    assert found["unread"].expected.str.contains("bitrate_Bps: at most").all()


def test_rows_without_a_value(tmp_path):
    bare = "2022-02-14T08:59:09Z,x,GCP,us-east1,AWS,eu-west-2,{},{},,"
    found = survey(tmp_path, HEADER, bare.format("", "9"), bare.format("8", ""), bare.format("", ""))
    assert found["tests"].outcome.tolist() == ["done", "done", "failed"]
    assert found["tests"].reason[2] == "neither RTT nor bitrate"
    assert len(found["pings"]) == len(found["transfers"]) == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((HEADER,), "expected rows of data, found 'no rows'"),
        (("a,b", "1,2"), r"results.csv:1: expected the columns timestamp or datetime, from_cloud.* \(missing: "),
        (("",), "expected CSV with a header"),
        ((HEADER, ROW.replace("GCP", "?"), ROW.replace("GCP", "!")), ":2: .*1 more such rows: none can be read"),
    ],
)
def test_what_cannot_be_read_at_all(tmp_path, lines, message):
    with pytest.raises(RawDataError, match=message):
        survey(tmp_path, *lines)
    with pytest.raises(RawDataError, match="a file that can be read"):
        importers.read_survey(tmp_path / "none.csv")


LOCATIONS = """cloud,region,latitude,longitude,count,lat_stdev,long_stdev,source
# a comment
AWS,eu-west-2,51.51,-0.1,2,0.1,0.2,one/other

GCP,us-east1,33.5,-80.67,1,0,0,one
GCP,us-east1,33.5,-80.67,1,0,0,one
AWS,nowhere-1,95,0,1,0,0,one
AWS,ca-west-1,,,,,,
"""


def test_own_coordinates_and_the_catalogues(tmp_path):
    (tmp_path / "locations.csv").write_text(LOCATIONS)
    found = survey(tmp_path, HEADER, ROW, locations=tmp_path / "locations.csv")
    places = found["regions"].set_index("name")
    assert list(places.index) == ["aws:eu-west-2", "gcp:us-east1"]
    cosine = np.cos(np.radians(51.51))
    assert places.precision_km["aws:eu-west-2"] == pytest.approx(np.hypot(0.105, 0.205 * cosine) * 111.2)
    assert np.isnan(places.precision_km["gcp:us-east1"]), "one source tells no spread"
    assert places.source["aws:eu-west-2"] == "locations.csv: one/other"
    assert found["unread"].line_number.tolist() == [6, 7, 8] and len(found["sources"]) == 2
    [own] = ingest.summarise_pairs(found, rtt="mean", regions=found["regions"]).distance_km
    [ours] = ingest.summarise_pairs(found, rtt="mean").distance_km
    assert ours == regions.distance_km("gcp:us-east1", "aws:eu-west-2")
    assert own == pytest.approx(6570, rel=0.02) and own != ours


def test_the_earliest_locations(tmp_path):
    path = tmp_path / "locations.csv"
    path.write_text("cloud,region,lat,long\n#AWS,us-west-1,45.85,-119.63\nAWS,us-east-1,39.02,-77.47\n")
    places = importers.read_locations(path)["regions"]
    assert places[["name", "latitude_deg"]].values.tolist() == [["aws:us-east-1", 39.02]]
    assert places.precision_km.isna().all() and places.source[0] == "locations.csv"


def test_coordinates_that_rtts_contradict_are_flagged(tmp_path):
    (tmp_path / "locations.csv").write_text(LOCATIONS.replace("33.5,-80.67,1,", "33.5,80.67,2,"))
    near = ROW.replace("91.605", "20.5")
    found = survey(tmp_path, HEADER, near, near, locations=tmp_path / "locations.csv")
    assert (found["flags"].rule == "light").any()


def test_what_became_of_it_can_be_told(tmp_path):
    found = survey(tmp_path, HEADER, ROW, ROW.replace("91.605", "slow"), ROW.replace("13107200.0,91.605", ","))
    counts = ingest.account(found).set_index("what").n
    assert (counts["attempts done"], counts["attempts failed"], counts["transfers"]) == (1, 1, 1)
    assert ingest.failures(found)["where"].tolist()[1].endswith("results.csv, line 3")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published survey is not on this machine")
def test_the_published_survey():
    found = importers.read_survey(SHARED / "results_202202.csv", SHARED / "locations.csv")
    assert {name: len(found[name]) for name in ("tests", "pings", "transfers", "regions", "unread")} == {
        "tests": 2138, "pings": 2138, "transfers": 2138, "regions": 53, "unread": 0,
    }  # fmt: skip
    assert (found["transfers"].bytes % 131072 == 0).all()
    maximum = found["transfers"].groupby(found["transfers"].from_region.str[:3]).throughput_bps.max() / 1e9
    assert maximum["aws"] == pytest.approx(4.08, abs=0.01) and maximum["gcp"] == pytest.approx(0.973, abs=0.001)
    assert found["sources"].licence.tolist() == ["Apache-2.0"] * 2
    assert found["sources"].version.str.startswith("commit ").all()
    pairs = ingest.summarise_pairs(found, rtt="mean", regions=found["regions"])
    assert (
        len(pairs) == 1556
        and pairs.distance_km.notna().all()
        and (pairs.n_tests.sum(), pairs.n_lost.isna().all()) == (2138, True)
    )
