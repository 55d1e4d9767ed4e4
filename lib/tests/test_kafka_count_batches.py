"""Batches are counted in the log by their headers alone, and what was counted is read, or refused."""

import json
import re
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.measure.kafka.programs import count_batches
from wanbench.read.ingest import kafka_load as reader

NOON_S = 1_800_000_000
ROW = [1, "load-0", 0, NOON_S, 2, 7, 400]
TIMES = {
    "unfinished": "1 of 3 producers",
    "started_at_s": 10.0,
    "all_sending_at_s": 12.0,
    "counts_from_s": 13.5,
    "counts_until_s": 20.25,
    "asked_to_stop_at_s": 20.25,
    "ended_at_s": 25.0,
    "missing": ["summary lines"],
}


def batch(latest_ms, records, *, body=b"x" * 100, magic=2, attributes=0):
    """A record batch: true header, made-up records."""
    length = count_batches.HEADER.size - count_batches.BEFORE_LENGTH + len(body)
    return (
        count_batches.HEADER.pack(
            7, length, 0, magic, 0, attributes, records - 1, latest_ms - 5, latest_ms, -1, -1, -1, records
        )
        + body
    )


def segment(folder, name, content, first=0):
    path = folder / name / f"{first:020d}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_header_is_that_of_the_format():
    assert count_batches.HEADER.size == 61


def test_each_second_and_partition_is_counted_over_all_segments(tmp_path):
    first = batch(NOON_S * 1000, 3) + batch(NOON_S * 1000 + 999, 4, body=b"y" * 10)
    segment(tmp_path, "load-0", first + batch(NOON_S * 1000 + 1000, 1))
    segment(tmp_path, "load-0", batch(NOON_S * 1000 + 1001, 2), first=8)
    segment(tmp_path, "load-1", batch(NOON_S * 1000, 5))
    segment(tmp_path, "other-0", batch(NOON_S * 1000, 9))
    segment(tmp_path, "load-1.abc-delete", batch(NOON_S * 1000, 9))
    size = 161
    assert count_batches.count(tmp_path, ["load", "absent"]) == {
        "rows": [
            ["load", 0, NOON_S, 2, 7, size + 71],
            ["load", 0, NOON_S + 1, 2, 3, 2 * size],
            ["load", 1, NOON_S, 1, 5, size],
        ],
        "cut_bytes": 0,
    }


@pytest.mark.parametrize("cut", [1, 50, 100, 160])
def test_a_batch_that_is_still_being_written_is_left_out_and_said(tmp_path, cut):
    segment(tmp_path, "t-0", batch(1000, 3) + batch(2000, 4)[:-cut])
    counted = count_batches.count(tmp_path, ["t"])
    assert [row[3:5] for row in counted["rows"]] == [[1, 3]]
    assert counted["cut_bytes"] == 161 - cut


def test_markers_of_transactions_and_space_allocated_ahead_are_no_batches(tmp_path):
    segment(tmp_path, "t-0", batch(1000, 3) + batch(1000, 1, attributes=count_batches.CONTROL) + bytes(500))
    segment(tmp_path, "t-1", b"")
    counted = count_batches.count(tmp_path, ["t"])
    assert counted["rows"] == [["t", 0, 1, 1, 3, 161]]


@pytest.mark.parametrize(
    "content",
    [batch(1000, 3, magic=1), batch(1000, 3)[1:] + bytes(100), b"\xff" * 200, batch(-1, 3)],
    ids=["older format", "shifted", "no log", "no timestamp"],
)
def test_what_is_no_log_of_this_format_is_refused(tmp_path, content):
    path = segment(tmp_path, "t-0", batch(1000, 1) + content)
    with pytest.raises(count_batches.LogError, match=rf"{re.escape(str(path))}.* at byte 161"):
        count_batches.count(tmp_path, ["t"])


def test_the_program_prints_the_counts_and_needs_nothing_but_python(tmp_path):
    segment(tmp_path, "t-0", batch(1000, 3))
    arguments = [sys.executable, "-I", "-S", count_batches.__file__]
    done = subprocess.run([*arguments, str(tmp_path), "t"], capture_output=True, check=True)
    assert json.loads(done.stdout)["rows"] == [["t", 0, 1, 1, 3, 161]]
    failed = subprocess.run([*arguments, str(tmp_path / "none"), "t"], capture_output=True)
    assert failed.returncode == 1
    assert b"none does not exist" in failed.stderr


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_counts_become_the_table(tmp_path):
    path = written(tmp_path / "a.batches.json", {"rows": [ROW, [*ROW[:3], NOON_S + 1, 1, 1, 70]], "cut_bytes": 0})
    frame = reader.read_batches(path)["batches"]
    assert frame.to_dict("list") == {
        "broker": [1, 1],
        "topic": ["load-0"] * 2,
        "partition": [0, 0],
        "at_s": [NOON_S, NOON_S + 1],
        "batches": [2, 1],
        "records": [7, 1],
        "bytes": [400, 70],
    }
    context = [column.name for column in tables.CONTEXT]
    tables.validate("batches", frame.assign(**dict.fromkeys(context[:-1]), source_file="a"))


PLACED = {"replicas": [["t", 0, 2, [1, 2], [2]]], "regions": [[1, "a:west"], [2, "b:east"]]}


def test_replicas_become_a_row_each(tmp_path):
    path = written(tmp_path / "a.batches.json", {"rows": []} | PLACED)
    frame = reader.read_batches(path)["placements"]
    assert frame.to_dict("list") == {
        "topic": ["t", "t"],
        "partition": [0, 0],
        "replica": [0, 1],
        "broker": [1, 2],
        "region": ["a:west", "b:east"],
        "leads": [False, True],
        "in_sync": [False, True],
    }


def test_logs_that_could_not_be_reached_leave_an_empty_table(tmp_path):
    path = written(tmp_path / "a.batches.json", {"left_out": "the cluster runs elsewhere"})
    assert reader.read_batches(path)["batches"].empty


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        {"left_out": None},
        {"rows": 3},
        {"rows": [ROW[:-1]]},
        {"rows": [{"broker": 1}]},
        {"rows": [ROW, ROW]},
        {"rows": [[*ROW[:4], 2, 1, 400]]},
        {"rows": [[*ROW[:4], 0, 0, 0]]},
        {"rows": [[*ROW[:4], -1, 7, 400]]},
        {"rows": [[*ROW[:4], 2, 7, 6]]},
        {"rows": [[*ROW[:3], 1.5, 2, 7, 400]]},
        {"rows": [[1, 2, *ROW[2:]]]},
        {"rows": [[*ROW[:4], True, 7, 400]]},
        {"rows": [[*ROW[:6], 10**400]]},
        '{"rows": ' + "[" * 100_000,
        {"rows": [], "replicas": [["t", 0, 2, [3], [2]]], "regions": PLACED["regions"]},
        {"rows": [], "replicas": [["t", 0, 2, [1]]], "regions": PLACED["regions"]},
        {"rows": []} | PLACED | {"regions": [[1, 3], [2, 4]]},
        {"rows": []} | PLACED | {"replicas": None},
    ],
)
def test_other_counts_are_refused(tmp_path, content):
    with pytest.raises(RawDataError, match=r"a\.batches\.json"):
        reader.read_batches(written(tmp_path / "a.batches.json", content))


def test_times_become_a_row(tmp_path):
    (row,) = reader.read_times(written(tmp_path / "a.times.json", TIMES))["loads"].to_dict("records")
    assert row == TIMES | {"missing": "summary lines"}
    unknown = dict.fromkeys(("all_sending_at_s", "counts_from_s", "counts_until_s", "asked_to_stop_at_s"))
    frame = reader.read_times(written(tmp_path / "b.times.json", TIMES | unknown | {"missing": []}))["loads"]
    assert frame[list(unknown)].isna().all(axis=None)
    assert frame.missing.isna().all()


@pytest.mark.parametrize(
    "changed",
    [
        {"started_at_s": None},
        {"unfinished": 1},
        {"started_at_s": "10"},
        {"started_at_s": 30.0},
        {"ended_at_s": 1e12},
        {"counts_from_s": None},
        {"counts_from_s": 21.0},
        {"counts_until_s": True},
        {"missing": None},
        {"missing": [3]},
    ],
)
def test_other_times_are_refused(tmp_path, changed):
    with pytest.raises(RawDataError, match=r"a\.times\.json"):
        reader.read_times(written(tmp_path / "a.times.json", TIMES | changed))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for read in (reader.read_batches, reader.read_times):
        with pytest.raises(RawDataError, match="No such file"):
            read(tmp_path / "none.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(["rows", *TIMES]), inner),
    max_leaves=20,
)


@pytest.mark.fuzz
@given(content=VALUES, field=st.integers(0, 6), value=VALUES)
def test_whatever_stands_there_is_a_table_or_a_raw_data_error(tmp_path_factory, content, field, value):
    path = tmp_path_factory.getbasetemp() / "fuzz.json"
    row = list(ROW)
    row[field] = value
    for document in (content, {"rows": content}, {"rows": [row]}, {**TIMES, list(TIMES)[field]: value}):
        written(path, document)
        for name, read in (("batches", reader.read_batches), ("loads", reader.read_times)):
            try:
                frame = read(path)[name]
            except RawDataError:
                continue
            context = [column.name for column in tables.CONTEXT]
            tables.validate(name, frame.assign(**dict.fromkeys(context[:-1]), source_file="a"))


@pytest.mark.fuzz
@given(at=st.integers(0, 321), byte=st.integers(0, 255), cut=st.integers(0, 322))
def test_a_damaged_log_is_counted_or_refused(tmp_path_factory, at, byte, cut):
    content = bytearray(batch(1000, 3) + batch(2000, 4))
    content[at] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.log"
    path.write_bytes(bytes(content[:cut]))
    try:
        assert len(list(count_batches.batches(path))) <= 3
    except count_batches.LogError as error:
        assert str(path) in str(error)
    except struct.error:
        pytest.fail("a header was read beyond the end")
