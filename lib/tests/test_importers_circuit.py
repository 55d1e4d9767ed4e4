"""A circuit's utilisation over time: what its portal exports, what is refused, and how full it was."""

import gzip
import json

import pandas as pd
import pytest

from wanbench.errors import MissingDataError, ParameterError, RawDataError
from wanbench.methods.lab.utilisation import circuit_capacity, circuit_windows
from wanbench.read.importers import read_circuit

GOOD = """time,circuit,in_mbps,out_mbps,capacity_gbps
2026-11-01T10:00:00Z,PF-1,800,12,1
2026-11-01T10:05:00Z,PF-1,950,13,1
2026-11-01T10:10:00Z,PF-1,100,14,1
"""


def read(folder, text, name="PF-9.csv", **options):
    path = folder / name
    path.write_text(text)
    return read_circuit(path, **options)


def test_a_circuit_is_read_and_judged(tmp_path):
    tables = read(tmp_path, GOOD)
    assert tables["unread"].empty and len(tables["metrics"]) == 9
    assert set(tables["metrics"].interval_s) == {300}
    found = circuit_capacity(tables["metrics"])
    assert found.sentence == (
        "Of 6 windows of 300 s in 1 circuit, each of one link, 1 was at capacity (95 % of the link's rate or more). "
        "The fullest window, from PF-1 to here, carried 95.0 % of the rate. Drops in queues are unknown."
    )
    assert found.formatted_table()["dropped by its queue"].tolist() == ["not known"] * 2
    assert found.finding("circuit").n == 1
    head, *rows = GOOD.splitlines(keepends=True)
    newest_first = read(tmp_path, "".join([head, *rows[::-1]]))
    assert newest_first["unread"].empty
    assert circuit_capacity(newest_first["metrics"]).sentence == found.sentence
    assert circuit_windows(tables["metrics"]).carried_bps.max() == 950e6


def test_json_other_names_and_percentages_say_the_same(tmp_path):
    rows = [
        {"t": 1_793_527_200 + 300 * n, "rx": each, "tx": 1, "x": None, "y": True}
        for n, each in enumerate((80, 95.5, 10))
    ]
    names = {"time": "t", "in_percent": "rx", "out_percent": "tx"}
    for text in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
        bare = read(tmp_path, text, "PF-9.json", columns=names)["metrics"]
        assert set(bare.unit) == {"%"} and set(bare.subject) == {"PF-9"}
        assert circuit_capacity(bare).links.max_utilisation.max() == 0.955
        known = read(tmp_path, text, "PF-9.json", columns=names, capacity_bps=1e9)["metrics"]
        assert circuit_windows(known).carried_bps.max() == 955e6
    assert bare.at_utc.min() == pd.Timestamp("2026-11-01T10:00Z")


@pytest.mark.parametrize(
    ("old", "new", "line", "found", "expected"),
    [
        (",100,", ",-100,", 4, "-100", "in_mbps: a number from 0"),
        (",100,", ",1e9 Mbps,", 4, "1e9 Mbps", "in_mbps: a number from 0"),
        (",100,14,1", ",100,14,0", 4, "0.0", "a capacity above 0"),
        ("T10:10", "T10:01", 4, "10:01:00", "a time after the row before of circuit PF-1"),
        ("T10:10", "T10:05", 4, "10:05:00", "a time after the row before of circuit PF-1"),
        ("T10:10:00Z", "T10:10:00", 4, "T10:10:00", "with its zone"),
    ],
)
def test_a_bad_row_is_named_and_left_out(tmp_path, old, new, line, found, expected):
    tables = read(tmp_path, GOOD.replace(old, new))
    [row] = tables["unread"].to_dict("records")
    assert row["line_number"] == line and found in row["found"] and expected in row["expected"]
    assert len(tables["metrics"]) == 6


def test_a_gap_is_named_and_not_filled(tmp_path):
    text = GOOD + "2026-11-01T11:00:00Z,PF-1,1,1,1\n2026-11-01T11:05:00Z,PF-1,1,1,1\n"
    tables = read(tmp_path, text)
    [row] = tables["unread"].to_dict("records")
    assert row["line_number"] == 5 and row["found"] == "3000 s after the row before of circuit PF-1"
    assert row["expected"].startswith("a row every 300 s") and set(tables["metrics"].interval_s) == {300}


def test_a_missing_value_is_named_and_the_others_of_its_row_are_kept(tmp_path):
    tables = read(tmp_path, GOOD.replace(",950,", ",,"))
    [row] = tables["unread"].to_dict("records")
    assert (row["line_number"], row["found"]) == (3, "nothing") and "a value of in" in row["expected"]
    assert len(tables["metrics"]) == 8 and set(tables["metrics"].interval_s) == {300}


def test_percentages_above_100_need_a_capacity(tmp_path):
    text = "time,in_percent,out_percent\n2026-11-01T10:00:00Z,101,1\n2026-11-01T10:05:00Z,9,1\n"
    assert read(tmp_path, text)["unread"].expected[0].endswith("at most 100, as the capacity is not known")
    assert read(tmp_path, text, capacity_bps=1e9)["unread"].empty


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("in_mbps", "in_MB/s", "column in_MB/s"),
        ("in_mbps", "rx", "one column in_ with one of bps"),
        ("out_mbps", "in_bps", "one column in_ with one of bps"),
        ("time", "when", "the columns time"),
    ],
)
def test_a_file_of_other_columns_is_refused(tmp_path, old, new, message):
    with pytest.raises(RawDataError, match=message):
        read(tmp_path, GOOD.replace(old, new, 1))


def test_what_else_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="columns has rx; allowed: time"):
        read(tmp_path, GOOD, columns={"rx": "in_mbps"})
    for text in ('[{"time": [1]}]', "[1]", "[{"):
        with pytest.raises(RawDataError, match="a list with a JSON object"):
            read(tmp_path, text)
    bare = read(tmp_path, GOOD.replace("capacity_gbps", "x"))["metrics"]
    with pytest.raises(MissingDataError, match="give capacity_bps"):
        circuit_capacity(bare)
    with pytest.raises(MissingDataError, match="no metrics of a circuit"):
        circuit_windows(bare[:0])


LIST = '[{"time": "2026-11-01T10:00:00Z", "in_bps": 5, "out_bps": 6}]'


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gzip"])
def test_a_list_of_objects_may_be_recoded_or_compressed(tmp_path, encoding):
    path = tmp_path / "PF-9.json"
    path.write_bytes(gzip.compress(LIST.encode()) if encoding == "gzip" else LIST.encode(encoding))
    assert read_circuit(path)["metrics"].value.tolist() == [5, 6]


SHEET = """Zeit;Rx (Mbit/s);Tx (Mbit/s)
01.11.2026 11:00;800;12,5
01.11.2026 11:05:00;950,25;13
01.11.2026 11:10;100;14
"""
NAMES = {"time": "Zeit", "in_mbps": "Rx (Mbit/s)", "out_mbps": "Tx (Mbit/s)"}


def test_a_european_spreadsheet_has_decimal_commas_unless_stated(tmp_path):
    options = {"columns": NAMES, "time_zone": "Europe/Berlin"}
    tables = read(tmp_path, SHEET, **options)
    metrics = tables["metrics"]
    assert tables["unread"].empty and set(metrics.interval_s) == {300}
    assert metrics.at_utc.min() == pd.Timestamp("2026-11-01T10:00Z")
    assert metrics[metrics.metric == "in"].value.tolist() == [8e8, 950.25e6, 1e8]
    points = read(tmp_path, SHEET.replace(",", "."), decimal=".", **options)["metrics"]
    assert points.value.tolist() == metrics.value.tolist()
    text = SHEET.replace(",5", "").replace(",25", "").replace("950", "1.204")
    assert read(tmp_path, text, decimal=".", **options)["metrics"].value.max() == 8e8
    assert read(tmp_path, text, **options)["unread"].found.tolist() == ["1.204"]
    with pytest.raises(RawDataError, match="commas or with semicolons, not both"):
        read(tmp_path, SHEET.replace("Zeit", "Zeit, MEZ"), **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIST.replace("}", ', "in_bps": 9}'), "a member is repeated"),
        (LIST.replace("}", ', "circuit": "\\ud800"}'), "surrogates not allowed"),
        (f'{{"data": {LIST}}}', r":1: expected a line with a JSON object of texts and numbers.*'{\"data\""),
    ],
)
def test_json_that_does_not_say_one_thing_is_refused(tmp_path, text, message):
    with pytest.raises(RawDataError, match=message):
        read(tmp_path, text, "PF-9.json")


def test_a_gap_does_not_make_itself_usual(tmp_path):
    text = GOOD.replace("10:10:00Z", "10:20:00Z")
    tables = read(tmp_path, text)
    assert tables["unread"].found.tolist() == ["900 s after the row before of circuit PF-1"]
    assert set(tables["metrics"].interval_s) == {300}
