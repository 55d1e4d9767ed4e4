"""Latency matrices in CSV and Markdown: layouts, cells, what is left out and reported. All numbers are made up."""

import gzip
import lzma
import re

import pandas as pd
import pytest

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.read.importers import read_matrix
from wanbench.read.ingest import summarise_pairs

VIRGINIA, IRELAND, TOKYO = "aws:us-east-1", "aws:eu-west-1", "aws:ap-northeast-1"


PLAIN = (
    "from/to,us-east-1,eu-west-1,ap-northeast-1\n"
    "us-east-1,0.6,67.1,145\n"
    "eu-west-1,67.3,0.5,201.25\n"
    "ap-northeast-1,146,202,0.4\n"
)


MARKDOWN = """## Round trips {#a}

| Average latency (ms) | us-east-1 | **Ireland** | Tokyo |
|:--|:-:|--:|---|
| **us-east-1** | 0.6 | 67.1 | 145 |
|Ireland|67.3| |201.25|
  | Tokyo | 146 ms | 202 | - |
"""


TIMES = {
    (VIRGINIA, IRELAND): 67.1,
    (VIRGINIA, TOKYO): 145.0,
    (IRELAND, VIRGINIA): 67.3,
    (IRELAND, TOKYO): 201.25,
    (TOKYO, VIRGINIA): 146.0,
    (TOKYO, IRELAND): 202.0,
}


@pytest.fixture(autouse=True)
def without_flags(request, monkeypatch):
    """The plausibility rules take time; only tests with the fixture `with_flags` run them."""
    if "with_flags" not in request.fixturenames:
        monkeypatch.setattr(
            "wanbench.read.plausibility.check", lambda found, regions=None: tables.from_rows("flags", [])
        )


@pytest.fixture
def with_flags():
    """Let this test raise flags."""


@pytest.fixture
def read(tmp_path):
    def read(text, name="latency.csv", **settings):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_matrix(path, **settings)

    return read


def times(found, column="mean_rtt_ms"):
    pings = found["pings"]
    assert not pings.duplicated(["from_region", "to_region"]).any()
    return dict(zip(zip(pings.from_region, pings.to_region, strict=True), pings[column], strict=True))


def remarks(found):
    return found["unread"]["found"].tolist()


def test_the_tables_are_valid_and_give_pairs(read, tmp_path):
    found = read(PLAIN, cloud="aws", statistic="p50", about={"title": "made up", "licence": "none"})
    assert set(found) >= {"tests", "pings", "sources", "unread", "flags"}
    for name, frame in found.items():
        pd.testing.assert_frame_equal(tables.validate(name, frame), frame)
    assert times(found, "median_rtt_ms") == TIMES
    pings = found["pings"]
    empty = [name for name in pings if name.endswith("rtt_ms") and name != "median_rtt_ms"]
    assert pings[empty].isna().all(axis=None) and (pings.source_file == str(tmp_path / "latency.csv")).all()
    assert pings.test_id.tolist()[:3] == ["latency.csv:2:3", "latency.csv:2:4", "latency.csv:3:2"]
    assert (found["tests"].outcome == "done").all() and found["tests"].test_id.is_unique
    (source,) = found["sources"].to_dict("records")
    assert (source["title"], source["licence"], source["bytes"]) == ("made up", "none", len(PLAIN))
    pairs = summarise_pairs(found, rtt="median").set_index(["from_region", "to_region"])
    assert pairs.rtt_ms.to_dict() == TIMES and (pairs.n_tests == 1).all()


def test_the_diagonal_is_left_out_and_said(read):
    found = read(PLAIN, statistic="mean")
    assert remarks(found) == ["values from a region to itself: 3, 0.4 to 0.6 ms"]
    assert remarks(read(re.sub(r"\b0\.\d\b", "-", PLAIN), statistic="mean")) == []


def test_a_table_in_markdown(read):
    found = read(MARKDOWN, name="latency.md", cloud="aws")
    assert times(found) == TIMES and found["pings"].test_id[0] == "latency.md:5:3"
    assert remarks(found) == ["values from a region to itself: 1, 0.6 to 0.6 ms"]


@pytest.mark.parametrize(
    "statistic, column",
    [
        ("min", "min_rtt_ms"),
        ("mean", "mean_rtt_ms"),
        ("median", "median_rtt_ms"),
        ("p50", "median_rtt_ms"),
        ("p90", "p90_rtt_ms"),
        ("p99", "p99_rtt_ms"),
        ("max", "max_rtt_ms"),
    ],
)
def test_the_statistic_chooses_the_column(read, statistic, column):
    assert times(read(PLAIN, statistic=statistic), column) == TIMES


@pytest.mark.parametrize(
    "corner, column, factor",
    [
        ("Average latency (ms)", "mean_rtt_ms", 1),
        ("P50 RTT [s]", "median_rtt_ms", 1000),
        ("median round trip in µs", "median_rtt_ms", 0.001),
        ("min", "min_rtt_ms", 1),
    ],
)
def test_the_corner_may_say_statistic_and_unit(read, corner, column, factor):
    found = times(read(PLAIN.replace("from/to", corner)), column)
    assert found == pytest.approx({pair: value * factor for pair, value in TIMES.items()})


def test_a_line_above_may_say_it_too(read):
    text = "# made up\nAverage latency between regions (ms)\n\n" + PLAIN
    found = read(text)
    assert times(found) == TIMES and found["pings"].test_id[0] == "latency.csv:5:3"


def test_a_corner_of_one_sign_is_no_comment(read):
    assert times(read("# made, up\n" + PLAIN.replace("from/to", "#"), statistic="mean")) == TIMES


def test_nobody_says_the_statistic(read):
    with pytest.raises(ParameterError, match=r"statistic is not given.*'from/to'.*'p50'"):
        read(PLAIN)
    with pytest.raises(ParameterError, match="statistic is not given"):
        read(PLAIN.replace("from/to", "min and max"))


def test_what_is_given_goes_before_the_corner(read):
    text = PLAIN.replace("from/to", "Average (s)")
    assert times(read(text, statistic="p90", unit="ms"), "p90_rtt_ms") == TIMES


def test_transposed(read):
    expected = {pair[::-1]: value for pair, value in TIMES.items()}
    assert times(read(PLAIN, statistic="mean", transposed=True)) == expected


@pytest.mark.parametrize(
    "corner, turned",
    [
        ("from/to", False),
        ("From \\ To", False),
        ("To \\ From", True),
        ("Destination region / Source region", True),
        ("Source", False),
        ("Destination", True),
        ("Source → Dest", False),
        ("From → To", False),
        ("Destination ← Source", True),
        ("RTT from region to region", False),
        ("Server \\ Client", True),
        ("Reflector", True),
        ("", False),
    ],
)
def test_the_corner_may_say_which_side_measures(read, corner, turned):
    text = PLAIN.replace("from/to", corner)
    expected = {pair[::-1] if turned else pair: value for pair, value in TIMES.items()}
    assert times(read(text, statistic="mean")) == expected
    assert times(read(text, statistic="mean", transposed=False)) == TIMES


def test_a_corner_that_leaves_the_direction_open_is_refused(read):
    text = PLAIN.replace("from/to", "Server")
    with pytest.raises(ParameterError, match=r"transposed is not given.*'Server'.*False .*, True"):
        read(text, statistic="mean")
    assert times(read(text, statistic="mean", transposed=False)) == TIMES


def test_a_row_per_pair_is_for_another_importer(read):
    with pytest.raises(RawDataError, match=r"importers\.read_table"):
        read("source,destination,p50_ms\nus-east-1,eu-west-1,68.9\n", statistic="p50")


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
def test_delimiters_are_found(read, delimiter):
    text = PLAIN.replace(",", delimiter)
    assert times(read(text, statistic="mean")) == TIMES


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        gzip.compress(PLAIN.encode(), mtime=0),
        lzma.compress(PLAIN.encode("utf-16")),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\n,,,\n\n").encode(),
    ],
    ids=["UTF-16", "UTF-16 LE", "gzip", "xz", "byte order mark", "CRLF", "empty lines"],
)
def test_encodings_and_line_ends(read, text):
    assert times(read(text, statistic="mean")) == TIMES


def test_decimal_commas(read):
    text = PLAIN.replace(",", ";").replace(".", ",")
    assert times(read(text, statistic="mean", decimal=",")) == TIMES
    quoted = 'x,us-east-1,eu-west-1\nus-east-1,,"67,25"\neu-west-1,"1.067,5",\n'
    assert times(read(quoted, statistic="mean", decimal=",")) == {
        (VIRGINIA, IRELAND): 67.25,
        (IRELAND, VIRGINIA): 1067.5,
    }


def test_a_comma_that_could_be_either_is_not_read(read):
    text = 'x,us-east-1,eu-west-1\nus-east-1,,"1,204"\neu-west-1,98,\n'
    found = read(text, statistic="mean")
    assert times(found) == {(IRELAND, VIRGINIA): 98.0}
    (row,) = found["unread"].to_dict("records")
    assert row["line_number"] == 2 and "decimal" in row["expected"] and "'eu-west-1'" in row["expected"]
    assert times(read(text, statistic="mean", decimal="."))[VIRGINIA, IRELAND] == 1204
    assert times(read(text, statistic="mean", decimal=","))[VIRGINIA, IRELAND] == 1.204


def test_a_triangle_is_enough(read):
    text = "x,us-east-1,eu-west-1,ap-northeast-1\nus-east-1,,67.1,145\neu-west-1,,,201.25\nap-northeast-1\n"
    found = read(text, statistic="mean")
    upper = [(VIRGINIA, IRELAND), (VIRGINIA, TOKYO), (IRELAND, TOKYO)]
    assert times(found) == {pair: TIMES[pair] for pair in upper}
    assert remarks(found) == []


def test_pairs_without_any_value_are_said(read):
    text = "x,us-east-1,eu-west-1,ap-northeast-1\nus-east-1,,67.1,N/A\neu-west-1,,,n/a\nap-northeast-1,—,12,\n"
    found = read(text, statistic="mean")
    assert len(times(found)) == 2
    assert remarks(found) == ["pairs without a value in either direction: 1 (aws:ap-northeast-1 and aws:us-east-1)"]


@pytest.mark.parametrize(
    "cell", ["fast", "-3", "nan ms", "1e3", "<1", "inf", "12 km", "0x10", "１２", "9" * 30, "=1+1"]
)
def test_a_bad_cell_costs_nothing_but_itself(read, cell):
    found = read(PLAIN.replace("201.25", cell), statistic="mean")
    assert times(found) == {pair: value for pair, value in TIMES.items() if pair != (IRELAND, TOKYO)}
    row = found["unread"].iloc[0]
    assert (row.line_number, row.found) == (3, cell)
    assert "row 'eu-west-1', column 'ap-northeast-1'" in row.expected


def test_a_name_that_is_no_region_costs_its_line_and_no_other(read):
    found = read(PLAIN.replace("\neu-west-1", "\nAtlantis"), statistic="mean")
    assert set(times(found)) == {pair for pair in TIMES if pair[0] != IRELAND}
    row = found["unread"].iloc[0]
    assert (row.line_number, row.found) == (3, "Atlantis") and "region is 'Atlantis', which is unknown" in row.expected


def test_a_vague_name_asks_for_the_cloud(read):
    text = "x,Dallas,Washington DC\nDallas,,31\nWashington DC,32,\n"
    with pytest.raises(RawDataError, match=r"latency.csv:1: .*gcp:us-south1 or ibm:us-south; name the cloud"):
        read(text, statistic="mean")
    assert times(read(text, cloud="ibm", statistic="mean")) == {
        ("ibm:us-south", "ibm:us-east"): 31.0,
        ("ibm:us-east", "ibm:us-south"): 32.0,
    }


def test_cells_beyond_the_header_are_said(read):
    found = read(PLAIN.replace("145\n", "145,7\n"), statistic="mean")
    assert times(found) == TIMES
    assert found["unread"].iloc[0].expected == "nothing at row 'us-east-1' in a column without a region"


def test_names_may_have_line_breaks(read):
    broken = 'x,"N. Virginia\nus-east-1","Ireland\neu-west-1"\n"N. Virginia\nus-east-1",,70\n"Ireland\neu-west-1",zz,\n'
    found = read(broken, statistic="mean")
    assert times(found) == {(VIRGINIA, IRELAND): 70.0}
    assert found["unread"].line_number.iloc[0] == 6


def test_two_columns_of_one_region_are_two_measurements(read):
    text = "x,us-east-1a,us-east-1b,eu-west-1\neu-west-1,67,68,\nus-east-1a,,1.1,66\n"
    found = read(text, cloud="aws", statistic="mean")
    pings = found["pings"]
    assert pings[pings.from_region == IRELAND].mean_rtt_ms.tolist() == [67.0, 68.0]
    assert pings.test_id.is_unique and remarks(found) == ["values from a region to itself: 1, 1.1 to 1.1 ms"]
    pairs = summarise_pairs(found, rtt="mean").set_index(["from_region", "to_region"])
    assert pairs.rtt_ms[IRELAND, VIRGINIA] == 67.5 and pairs.n_tests[IRELAND, VIRGINIA] == 2


def test_a_matrix_is_flagged(read, with_flags):
    found = read(PLAIN.replace("201.25", "2.01"), statistic="mean")
    flagged = found["flags"]
    assert ((flagged.from_region == IRELAND) & (flagged.to_region == TOKYO)).any()
    assert not len(read(PLAIN, statistic="mean")["flags"].query("verdict == 'impossible'"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected names of regions down the first column"),
        ("\n\n", "fewer than two rows"),
        ("from,to,rtt_ms\nus-east-1,eu-west-1,67\n", "found 'the first line: "),
        ("Service,us-east-1,eu-west-1\nDatabase,5,6\nQueue,7,8\n", "found 'the first column: Database, Queue'"),
        (PLAIN.replace("from/to", "Throughput (Mbit/s)"), "a table of Throughput, not of round-trip times"),
        (PLAIN.replace("from/to", "one-way delay (ms)"), "a table of one-way"),
        (re.sub(r",[\d.]+", ",", PLAIN), "no time between two regions"),
        (re.sub(r",[\d.]+", ",fast", PLAIN), "latency.csv:2: .*a time, such as 67.3.*no time between two regions"),
        (PLAIN + 'ap-south-1,"1', "latency.csv:5: expected CSV whose quotes are closed"),
        (b"%PDF-1.7\n1,2\n", "latency.csv: expected text, .* found 'a PDF document'"),
        (b"x,us-east-1\nus-\xff,3\n", "latency.csv:2: expected text in UTF-8"),
        (b"x,us-east-1\nus-\x00,3\n", "latency.csv:2: expected text, found 'NUL'"),
        ("x" + ",us-east-1" * 700 + "\n", "at most 600 rows and 600 columns"),
        ("x,us-east-1\n" + "us-east-1,2\n" * 700, "at most 600 rows"),
        ("x,us-east-1\n" + '"' + "y" * 200_000 + '",2\n', "latency.csv:2: .*field larger"),
        (b" " * ((1 << 24) + 1), "at most 16,777,216 bytes"),
    ],
)
def test_what_is_no_matrix_is_refused(read, text, message):
    with pytest.raises(RawDataError, match=message):
        read(text, statistic="mean")


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(RawDataError, match="a file that can be read"):
            read_matrix(path, statistic="mean")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"statistic": "mode"}, "statistic is 'mode'; allowed: 'min'"),
        ({"unit": "min"}, "unit is 'min'; allowed: 'ms'"),
        ({"decimal": ";"}, "decimal is ';'"),
        ({"cloud": "oci"}, "cloud is 'oci'; allowed: 'aws'"),
        ({"about": {"author": "me"}}, "allowed: a mapping of title"),
    ],
)
def test_parameters_are_checked(read, settings, message):
    with pytest.raises(ParameterError, match=message):
        read(PLAIN, **({"statistic": "mean"} | settings))


NESTED = """{"metadata": {"percentile": "p_50", "timeframe": "1D", "unit": "milliseconds"},
 "data": {"us-east-1": {"us-east-1": 0.6, "eu-west-1": 67.1, "ap-northeast-1": 145},
          "eu-west-1": {"us-east-1": 67.3, "eu-west-1": 0.5, "ap-northeast-1": 201.25},
          "ap-northeast-1": {"us-east-1": 146, "eu-west-1": 202, "ap-northeast-1": null}}}"""


def test_nested_objects_in_json_are_a_matrix(read):
    found = read(NESTED, "cloudping.json", cloud="aws")
    assert times(found, "median_rtt_ms") == TIMES
    assert times(read(NESTED, cloud="aws", transposed=True), "median_rtt_ms")[IRELAND, VIRGINIA] == 67.1
    bare = NESTED.partition('"data": ')[2][:-1]
    assert times(read(bare, cloud="aws", statistic="mean")) == TIMES
    with pytest.raises(ParameterError, match="statistic is not given"):
        read(bare, cloud="aws")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"data": [1]}', "an object of regions to objects of regions to times"),
        ('{"data": {"us-east-1": 4}}', "an object of regions to objects of regions to times"),
        ('{"us-east-1": {"eu-west-1": ', "a latency matrix in JSON"),
        ('{"us-east-1": {"eu-west-1": 1}, "us-east-1": {"eu-west-1": 2}}', "a latency matrix in JSON"),
        ('{"us-east-1": {"eu-west-1": {"ms": 1}}, "eu-west-1": {"us-east-1": "\\ud800"}}', "a time, such as 67.3"),
        ("{}", "names of regions down the first column"),
    ],
)
def test_other_json_is_no_matrix(read, text, expected):
    with pytest.raises(RawDataError, match=expected):
        read(text, statistic="mean")
