"""A user's own table under a mapping: what is read, and how each fault is reported."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import yaml

from wanbench.errors import ParameterError, RawDataError
from wanbench.folders import samples_folder
from wanbench.read import importers, ingest
from wanbench.read.importers.mapping import KEYS

COLUMNS = {"from": "a", "to": "b", "mean_rtt": "rtt"}
MAPPING = {"columns": COLUMNS, "units": {"rtt": "ms"}}
A, B = "aws:eu-west-1", "gcp:us-east1"


def read(folder, text, mapping, name="mine.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return importers.read_table(path, mapping)


def test_the_sample():
    folder = samples_folder() / "mapping"
    found = importers.read_table(folder / "made_up.csv", folder / "made_up.yml")
    assert found["pings"].mean_rtt_ms.tolist() == [25.5, 25.7, 9.1]
    assert found["transfers"].throughput_bps.tolist() == [947.2e6, 968e6, 3221.6e6]
    assert found["tests"].started_at_utc[0] == pd.Timestamp("2025-05-02T07:30Z"), "summer time in Berlin"
    assert found["tests"].setting.tolist() == ["klein", "klein", "klein", "groß"]
    assert found["unread"][["line_number", "found"]].values.tolist() == [[7, "Atlantis"]]
    [source] = found["sources"].to_dict("records")
    assert source["title"] == "Made-up measurements that show a mapping" and source["licence"] == "CC0-1.0"
    pairs = ingest.summarise_pairs(found, rtt="mean")
    assert len(pairs) == 4 and pairs.n_lost.tolist()[1:3] == [0, 1]


def test_the_example_in_the_text_is_the_sample():
    text = importers.mapping.__doc__.split("::\n\n", 1)[1]
    sample = yaml.safe_load((samples_folder() / "mapping" / "made_up.yml").read_text(encoding="utf-8"))
    assert yaml.safe_load(text) == {key: value for key, value in sample.items() if key != "comment"}


@pytest.mark.parametrize(
    ("unit", "bps"),
    [
        ("bit/s", 2), ("kbit/s", 2e3), ("Mbit/s", 2e6), ("Gbit/s", 2e9), ("bytes/s", 16), ("kB/s", 16e3),
        ("MB/s", 16e6), ("GB/s", 16e9), ("KiB/s", 16 * 2**10), ("MiB/s", 16 * 2**20), ("GiB/s", 16 * 2**30),
    ],
)  # fmt: skip
def test_units_of_throughput(tmp_path, unit, bps):
    mapping = {
        "columns": {"from": "a", "to": "b", "throughput": "rate"},
        "units": {"throughput": unit},
        "constants": {"protocol": "TCP"},
    }
    found = read(tmp_path, f"a,b,rate\n{A},{B},2\n", mapping)
    assert found["transfers"].throughput_bps.tolist() == [bps] and len(found["pings"]) == 0


@pytest.mark.parametrize(("unit", "ms"), [("s", 2500), ("ms", 2.5), ("us", 0.0025)])
def test_units_of_rtt(tmp_path, unit, ms):
    found = read(tmp_path, f"a,b,rtt\n{A},{B},2.5\n", MAPPING | {"units": {"rtt": unit}})
    assert found["pings"].mean_rtt_ms.tolist() == [pytest.approx(ms)]


def test_every_column(tmp_path):
    columns = {
        "from": "f", "to": "t", "from_cloud": "fc", "to_cloud": "tc", "time": "w", "run": "r", "min_rtt": "lo",
        "median_rtt": "md", "max_rtt": "hi", "sd_rtt": "sd", "p90_rtt": "p90", "p95_rtt": "p95", "p99_rtt": "p99",
        "sent_throughput": "st", "throughput": "tp", "sent": "n", "lost": "x", "streams": "s", "retransmits": "re",
        "duration": "d", "bytes": "by", "protocol": "pr",
    }  # fmt: skip
    values = {
        "f": "eu-west-1", "t": "us-east1", "fc": "AWS", "tc": "GCP", "w": "2025-01-01T00:00:00+01:00", "r": "one",
        "lo": 1, "md": 2, "hi": 9, "sd": 0.5, "p90": 3, "p95": 4, "p99": 5, "st": 7, "tp": 6, "n": 10, "x": 2,
        "s": 4, "re": 3, "d": 2, "by": 1.5, "pr": "TCP",
    }  # fmt: skip
    mapping = {"columns": columns, "units": {"rtt": "ms", "throughput": "Mbit/s", "duration": "min", "bytes": "MB"}}
    text = ",".join(values) + "\n" + ",".join(map(str, values.values())) + "\n"
    found = read(tmp_path, text, mapping)
    [test], [ping], [transfer] = (found[name].to_dict("records") for name in ("tests", "pings", "transfers"))
    assert (test["run_id"], test["from_region"], test["to_region"]) == ("one", A, B)
    assert test["started_at_utc"] == pd.Timestamp("2024-12-31T23:00Z")
    names = ["min", "median", "max", "sd", "p90", "p95", "p99"]
    assert [ping[f"{name}_rtt_ms"] for name in names] == [1, 2, 9, 0.5, 3, 4, 5]
    assert (ping["n_sent"], ping["n_lost"]) == (10, 2) and np.isnan(ping["mean_rtt_ms"])
    assert (transfer["throughput_bps"], transfer["sent_throughput_bps"]) == (6e6, 7e6)
    assert (transfer["duration_s"], transfer["bytes"], transfer["streams"]) == (120, 1_500_000, 4)
    assert transfer["retransmits"] == 3


def test_json_lines(tmp_path):
    rows = [{"a": A, "b": B, "rtt": 20.25}, {"a": B, "b": A, "rtt": None}, {"a": "aws:x y", "b": A, "rtt": 1}]
    rows = [row | {"sd": 0.5} for row in rows]  # a spread alone is no measurement
    mapping = MAPPING | {"columns": COLUMNS | {"sd_rtt": "sd"}}
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), mapping, "mine.jsonl")
    assert found["pings"].mean_rtt_ms.tolist() == [20.25] and found["unread"].line_number.tolist() == [3]
    assert found["tests"].outcome.tolist() == ["done", "failed"]


def test_regions_are_named_in_many_ways(tmp_path):
    text = f"a,b,rtt\nus-east1-b,{A},1\nFRA,{A},1\nlab:one,{A},1\n,{A},1\n"
    found = read(tmp_path, text, MAPPING | {"regions": {"FRA": "aws:eu-central-1"}})
    assert found["pings"].from_region.tolist() == [B, "aws:eu-central-1", "lab:one"]
    assert found["unread"].line_number.tolist() == [5]


def test_a_time_needs_a_zone(tmp_path):
    mapping = {"columns": COLUMNS | {"time": "at"}, "units": {"rtt": "ms"}}
    text = f"a,b,rtt,at\n{A},{B},1,2025-03-30T02:30:00\n{A},{B},1,2025-03-30T03:30:00\n{A},{B},1,2025-03-30T03:30Z\n"
    found = read(tmp_path, text, mapping)
    assert found["unread"].line_number.tolist() == [2, 3]
    assert "a time (ISO 8601) with its zone" in found["unread"].expected[0]
    found = read(tmp_path, text, mapping | {"time_zone": "Europe/Berlin"})
    assert found["unread"].line_number.tolist() == [2], "the hour that the clocks skipped"
    assert found["tests"].started_at_utc.astype(str).tolist()[0] == "2025-03-30 01:30:00+00:00"
    zoned = mapping | {"time_zone": "Europe/Berlin", "missing": ["unknown"]}
    found = read(tmp_path, text.replace("2025-03-30T02:30:00", "Unknown"), zoned)
    assert found["unread"].empty and found["tests"].started_at_utc.isna().tolist() == [True, False, False]


def test_a_transfer_has_a_stream(tmp_path):
    columns = {"from": "a", "to": "b", "throughput": "rate", "streams": "n"}
    mapping = {"columns": columns, "units": {"throughput": "bit/s"}, "constants": {"protocol": "TCP"}}
    found = read(tmp_path, f"a,b,rate,n\n{A},{B},5,0\n{A},{B},5,\n{A},{B},5,-1\n", mapping)
    assert found["unread"].line_number.tolist() == [2, 4] and len(found["transfers"]) == 1


def test_numbers_beyond_all_measurements_cost_their_rows(tmp_path):
    mapping = {"columns": {"from": "a", "to": "b", "throughput": "rate", "bytes": "size"}}
    mapping |= {"units": {"throughput": "Mbit/s", "bytes": "GB"}, "constants": {"protocol": "TCP"}}
    rows = [f"{A},{B},{rate},{size}" for rate, size in (("1e304", "1"), ("5", "1e17"), ("5", "1"))]
    found = read(tmp_path, "\n".join(["a,b,rate,size", *rows]), mapping)
    assert found["transfers"].throughput_bps.tolist() == [5e6]
    assert found["unread"].line_number.tolist() == [2, 3]
    assert found["unread"].found.tolist() == ["1e304", "1e17"]


@pytest.mark.parametrize("given", [5, None])
def test_what_is_no_path_and_no_mapping(tmp_path, given):
    with pytest.raises(ParameterError, match="allowed"):
        read(tmp_path, f"a,b,rtt\n{A},{B},7", given)
    with pytest.raises(ParameterError, match="path of a file"):
        importers.read_survey(given)


def test_more_lost_than_sent_is_refused(tmp_path):
    mapping = {"columns": COLUMNS | {"sent": "n", "lost": "x"}, "units": {"rtt": "ms"}}
    found = read(tmp_path, f"a,b,rtt,n,x\n{A},{B},1,5,6\n{A},{B},,5,5\n{A},{B},1,5,0.5\n", mapping)
    assert found["unread"].line_number.tolist() == [2, 4]
    assert found["pings"][["n_sent", "n_lost"]].values.tolist() == [[5, 5]]
    assert found["tests"].outcome.tolist() == ["done"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": {}}, rf"unknown colums; allowed: {', '.join(KEYS)}"),
        ({"columns": COLUMNS | {"rtt": "x"}}, "columns holds unknown rtt; allowed: from, to, cloud, .*mean_rtt"),
        ({"columns": {"from": "a", "to": "b"}}, "lacks columns; allowed: from, to, and at least one of min_rtt"),
        ({"columns": {"to": "b", "min_rtt": "c"}}, "lacks columns; allowed: from, to"),
        ({"columns": ["a"]}, "allowed: names with values"),
        ({"columns": COLUMNS | {"to": None}}, "columns: 'to' is None; allowed: a string"),
        ({"units": {}}, "units lacks rtt, the unit of mean_rtt; allowed: s, ms, us"),
        ({"units": {"rtt": "msec"}}, "unit of rtt is 'msec'; allowed: s, ms, us"),
        ({"units": {"rtt": "ms", "throughput": "mbit/s"}}, "unit of throughput is 'mbit/s'; allowed: bit/s, .*case"),
        (
            {"units": {"rtt": "ms", "speed": "c"}},
            "units holds unknown speed; allowed: rtt, throughput, duration, bytes",
        ),
        ({"constants": {"to": A}}, "to is both a column and a constant"),
        ({"constants": {"wire": "thick"}}, "constants holds unknown wire"),
        ({"delimiter": ";;"}, "delimiter is ';;'; allowed: one character"),
        ({"decimal": ","}, "decimal is ','; allowed: .* and not the delimiter"),
        ({"decimal": "'"}, "decimal is .*; allowed: '.' or ','"),
        ({"missing": "-"}, "missing is '-'; allowed: a list of texts"),
        ({"header": "a,b"}, "header is 'a,b'; allowed: a list of names"),
        ({"format": "xml"}, "format is 'xml'; allowed: 'csv', 'jsonl'"),
        ({"format": "jsonl", "comment": "#"}, "comment apply to csv only"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone is 'Europe/Atlantis'; allowed: UTC"),
        ({"time_zone": "../../etc/passwd"}, "time_zone is"),
        ({"time_format": "ISO"}, "time_format is 'ISO'; allowed: a format of strptime"),
        ({"source": {"author": "me"}}, "'author'.*; allowed: a mapping of title, address, version, licence"),
        ({"source": {"version": 2025}}, "'version': 2025.*to text"),
        ({"columns": COLUMNS | {"throughput": "rtt"}, "units": {"rtt": "ms", "throughput": "bit/s"}}, "lacks protocol"),
    ],
)
def test_faults_of_a_mapping(tmp_path, change, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, f"a,b,rtt\n{A},{B},1\n", MAPPING | change)


def test_a_mapping_that_is_no_yaml(tmp_path):
    (tmp_path / "m.yml").write_text("columns: [")
    with pytest.raises(ParameterError, match=r"m\.yml, line 1: expected the node content"):
        importers.load_mapping(tmp_path / "m.yml")
    (tmp_path / "m.yml").write_text("- a")
    with pytest.raises(ParameterError, match="a mapping with the keys"):
        importers.load_mapping(tmp_path / "m.yml")
    (tmp_path / "m.yml").write_text("columns: !!python/object/apply:os.system ['true']")
    with pytest.raises(ParameterError, match=r"m\.yml, line 1: could not determine a constructor"):
        importers.load_mapping(tmp_path / "m.yml")


def test_a_column_that_is_not_there(tmp_path):
    with pytest.raises(RawDataError, match=r"mine.csv:1: expected the columns a, b, rtt \(missing: rtt\)"):
        read(tmp_path, f"a,b\n{A},{B}\n", MAPPING)


LONG = "source,destination,p50_ms\nus-east-1,eu-west-1,68.9\neu-west-1,us-east-1,68.1\n"


@pytest.mark.parametrize(
    ("header", "column", "factor"),
    [
        ("source,destination,p50_ms", "median_rtt_ms", 1),
        ("src_region,dst_region,avg_latency_ms", "mean_rtt_ms", 1),
        ("fromRegion,toRegion,min rtt (ms)", "min_rtt_ms", 1),
        ("From,To,P99 [s]", "p99_rtt_ms", 1000),
    ],
)
def test_columns_of_common_names_need_no_mapping(tmp_path, header, column, factor):
    text = LONG.replace("source,destination,p50_ms", header)
    found = read(tmp_path, text, {"constants": {"cloud": "aws"}})["pings"]
    assert found[["from_region", "to_region"]].values.tolist() == [
        ["aws:us-east-1", "aws:eu-west-1"],
        ["aws:eu-west-1", "aws:us-east-1"],
    ]
    assert found[column].tolist() == [68.9 * factor, 68.1 * factor]


def test_a_cloud_may_stand_in_its_own_column(tmp_path):
    text = "source_cloud,source,destination_cloud,destination,p50_ms,n\naws,eu-west-1,gcp,us-east1,80,3\n"
    [ping] = read(tmp_path, text, None)["pings"].to_dict("records")
    assert (ping["from_region"], ping["to_region"], ping["median_rtt_ms"]) == (A, B, 80)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("source,src_city,p50_ms", "source and src_city can both be from"),
        ("source,destination,p50", "units lacks rtt, the unit of median_rtt"),
        ("source,destination,latency", "lacks columns; allowed: from, to, and at least one of"),
        ("here,there,p50_ms", "not given for the columns here, there, p50_ms.* lacks columns; allowed: from, to"),
    ],
)
def test_names_that_do_not_say_what_columns_hold(tmp_path, header, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, LONG.replace("source,destination,p50_ms", header), None)


def test_a_file_without_header_and_with_units_in_its_cells(tmp_path):
    mapping = {"header": ["to", "p50_ms"], "constants": {"from": "azure:westeurope", "cloud": "azure"}}
    found = read(tmp_path, "japaneast,44.76367ms\nkoreacentral,82.85 ms\nuksouth,7s\n", mapping)
    assert found["pings"].to_region.tolist() == ["azure:japaneast", "azure:koreacentral"]
    assert found["pings"].median_rtt_ms.tolist() == [44.76367, 82.85]
    assert found["unread"][["line_number", "found"]].values.tolist() == [[3, "7s"]]


def test_other_ways_to_write_text(tmp_path):
    (tmp_path / "mine.csv").write_bytes(f"a,b,rtt\r\n{A},{B},1\r\n".encode("utf-16"))
    assert len(importers.read_table(tmp_path / "mine.csv", MAPPING)["pings"]) == 1
    (tmp_path / "mine.csv").write_bytes(gzip.compress(f"a,b,rtt\n{A},{B},1\n".encode()))
    assert len(importers.read_table(tmp_path / "mine.csv", MAPPING)["pings"]) == 1
    (tmp_path / "mine.csv").write_bytes(b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0" + bytes(16) + b"xl/workbook.xml")
    with pytest.raises(RawDataError, match=r"found 'an Excel workbook \(XLSX\)'"):
        importers.read_table(tmp_path / "mine.csv", MAPPING)
    (tmp_path / "mine.csv").write_bytes(b"\xef\xbb\xbfa,b,rtt\r" + f"{A},{B},1\r".encode() + b"\xff,b,1\r\0,b,1\r")
    found = importers.read_table(tmp_path / "mine.csv", MAPPING)
    assert len(found["pings"]) == 1
    assert found["unread"].expected.tolist() == ["text in UTF-8", "text without NUL"]
