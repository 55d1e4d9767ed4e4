"""
Damaged and invented tables: each ends in valid tables or in a RawDataError, and no row is lost.

`make fuzz-more` tries a thousand for each importer.
"""

import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read import importers
from wanbench.read.importers import sheet

FUZZ = settings(max_examples=settings.default.max_examples // 5)  # each example reads whole tables
SURVEY = (
    b"timestamp,run_id,from_cloud,from_region,to_cloud,to_region,bitrate_Bps,avgrtt,gcp_vm,aws_vm\n"
    b"2022-02-14T08:59:09Z,abcdef,GCP,us-east1,AWS,eu-west-2,13107200.0,91.605,e2-small,t3.nano\n"
    b"2022-02-18T09:04:36.176509Z,ghijkl,AWS,eu-west-1,AWS,eu-central-1,350355456,23.541,,t3.nano\n"
    b"2022-02-14T08:59:04Z,abcdef,AWS,eu-north-1,AWS,us-east-1,,109.462,,t3.nano\n"
)
JSONL = (
    b'{"datetime":"2022-01-13T14:38:14Z","run_id":"a","from":{"cloud":"GCP","region":"us-east1"},'
    b'"to":{"cloud":"AWS","region":"us-east-1"},"bitrate_Bps":"120Mi","avgrtt":"0.756", "distance": 0.0}\n' * 2
)
GRID = (
    b"src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,min_rtt,avg_rtt,max_rtt,mdev_rtt\n"
    b"aws:eu-north-1,PREMIUM,m5.large,azure:eastus,PREMIUM,Standard_D2_v3,105.897,105.976,106.069,0.297\n"
    b"gcp:us-east1-b,STANDARD,n2-standard-4,aws:ap-east-1,PREMIUM,m5.large,41.486,41.593,41.717,\n"
)
THROUGHPUT = (
    b"src_region,dst_region,throughput_sent,throughput_received,iperf3_connections,success\n"
    b"aws:eu-west-3,gcp:europe-west6-a,5014191142.78,4737423753.3,64,True\n"
    b"aws:eu-west-3,gcp:europe-west6-a,,,64,False\n"
)
TIMED = THROUGHPUT.replace(b"True", b"2025-03-30T03:30:00").replace(b"False", b"2025-03-30T03:30:00Z")
LOCATIONS = (
    b"cloud,region,latitude,longitude,count,lat_stdev,long_stdev,source\n# note\n"
    b"AWS,eu-west-2,51.51,-0.1,2,0.1,0.2,one/other\nGCP,us-east1,33.5,-80.67,1,0,0,one\n"
)
MAPPING = {
    "columns": {
        "from": "src_region", "to": "dst_region", "throughput": "throughput_received", "streams": "iperf3_connections",
        "time": "success",
    },
    "units": {"throughput": "MiB/s"},
    "constants": {"protocol": "TCP"},
    "time_zone": "Europe/Berlin",
}  # fmt: skip
ODD = [
    "", "nan", "-inf", "1e999", "0x10", "-1", "1_000", "९", "\u202e", "\x00", "\udcff", '"', '""', ",", "\n", "\r",
    "\u2028",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "2022-02-30T00:00:00Z", "99999999999999999999", "1e308", "Gi",
    "{", "}", "[[", "null", "true", "<script>", "=1+1", "aws:", "😀" * 3, "a" * 300,
]  # fmt: skip


@st.composite
def damaged(draw, samples):
    """A sample in which fields, lines or bytes were replaced, put twice, or taken away, up to four times."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        odd = draw(st.one_of(st.sampled_from(ODD), st.text(max_size=8))).encode("utf-8", "surrogatepass")
        lines = data.split(b"\n")
        line = draw(st.integers(0, len(lines) - 1))
        fields = lines[line].split(b",")
        field = draw(st.integers(0, len(fields) - 1))
        how = draw(st.integers(0, 6))
        if how <= 2:
            fields[field] = odd
            lines[line] = b",".join(fields)
        elif how == 3:
            lines.insert(draw(st.integers(0, len(lines))), lines[line])
        elif how == 4:
            del lines[line]
        data = b"\n".join(lines)
        if how == 5:
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.binary(max_size=3)) + data[at + draw(st.integers(0, 2)) :]
        elif how == 6:
            data = data[: draw(st.integers(0, len(data)))]
    return data


def imported(read, name, data):
    """The tables, checked, and what holds for every importer; None if the file cannot be read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            found = read(path)
        except RawDataError as error:
            assert error.expected and (error.line_number is None or error.line_number >= 1)
            str(error).encode()
            return
    for each, frame in found.items():
        tables.validate(each, frame)
    tests = set(found["tests"].test_id)
    for each in {"pings", "transfers"} & set(found):
        assert set(found[each].test_id) <= tests and not found[each].from_region.isna().any()
    lines = found["unread"].line_number.tolist() + [int(test.rpartition(":")[2]) for test in found["tests"].test_id]
    if name.endswith(".csv"):
        assert len(lines) == len(set(lines)), "a line is read or refused, never both"
        text = data.decode("utf-8-sig", "replace") if data[:2] not in (b"\xff\xfe", b"\xfe\xff") else ""
        filled = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.strip()]
        comments = sum(line.lstrip().startswith("#") for line in filled)
        if text:
            assert len(filled) - 1 - comments <= len(lines) <= len(filled) - 1, "every line is read or refused"


def without_flags(found, regions=None):
    return {name: tables.validate(name, frame) for name, frame in found.items()}


def survey(path):
    with patch("wanbench.read.importers.intercloud.finished", without_flags):
        return importers.read_survey(path)


def skyplane(path):
    with patch("wanbench.read.importers.skyplane.finished", without_flags):
        return importers.read_skyplane(path)


def mapped(path):
    with patch("wanbench.read.importers.mapping.finished", without_flags):
        return importers.read_table(path, MAPPING)


@pytest.mark.fuzz
@FUZZ
@given(st.one_of(damaged([SURVEY]), st.binary(max_size=60)))
def test_survey(data):
    imported(survey, "r.csv", data)


@pytest.mark.fuzz
@FUZZ
@given(st.one_of(damaged([JSONL]), st.binary(max_size=60)))
def test_survey_in_json_lines(data):
    imported(survey, "r.jsonl", data)


@pytest.mark.fuzz
@FUZZ
@given(damaged([GRID, THROUGHPUT]))
def test_skyplane(data):
    imported(skyplane, "g.csv", data)


@pytest.mark.fuzz
@FUZZ
@given(damaged([TIMED]))
def test_mapped(data):
    imported(mapped, "m.csv", data)


@pytest.mark.fuzz
@FUZZ
@given(damaged([LOCATIONS, LOCATIONS.replace(b"latitude,longitude", b"lat,long")]))
def test_locations(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "locations.csv"
        path.write_bytes(data)
        try:
            found = importers.read_locations(path)
        except RawDataError:
            return
    for each, frame in found.items():
        tables.validate(each, frame)
    assert found["regions"].name.is_unique


@pytest.mark.fuzz
@FUZZ
@given(st.lists(st.sampled_from([text for text in ODD if text != "\udcff"]), min_size=1, max_size=6))
def test_numbers_and_times(texts):
    one = sheet.Sheet({"path": "x"}, {"a": texts, "b": texts}, range(1, len(texts) + 1))
    numbers, times = one.number("a"), one.time("b", "Europe/Berlin")
    assert (numbers.isna() | (numbers >= 0)).all() and str(times.dt.tz) == "UTC"


def test_clean_tables_go_through_whole():
    with tempfile.TemporaryDirectory() as folder:
        for read, data, n in ((survey, SURVEY, 3), (skyplane, GRID, 2), (skyplane, THROUGHPUT, 2), (mapped, TIMED, 2)):
            path = Path(folder) / "x.csv"
            path.write_bytes(data)
            found = read(path)
            assert len(found["tests"]) == n and len(found["unread"]) == 0
