"""Tables: what is refused and why, what survives Parquet, and the dictionary."""

from pathlib import Path

import data_readme as dictionary
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError

ROOT = Path(__file__).resolve().parents[2]
ECHO = {"source_file": "ping/a.txt", "sequence": 1, "lost": False, "duplicate": False, "rtt_ms": 1.5}
SAMPLE_VALUES = {"text": "x", "count": 3, "number": 0.5, "flag": True, "time": "2026-11-21T10:00:00.000001Z"}


def a_row(name, *, nulls=False):
    return {
        column.name: (
            None if nulls and column.nullable else column.allowed[0] if column.allowed else SAMPLE_VALUES[column.type]
        )
        for column in tables.table(name).columns
    }


@pytest.mark.parametrize("name", tables.TABLES)
def test_what_is_written_is_what_is_read(name, tmp_path):
    frame = tables.from_rows(name, [a_row(name), a_row(name, nulls=True)])
    path = tables.write(name, frame, tmp_path)
    assert path == tmp_path / f"{name}.parquet"
    pd.testing.assert_frame_equal(tables.read(name, tmp_path), frame)
    assert [column.dtype for column in tables.table(name).columns] == [str(dtype) for dtype in frame.dtypes]
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


@pytest.mark.parametrize("name", tables.TABLES)
def test_empty_tables_pass_and_keep_their_types(name, tmp_path):
    empty = tables.from_rows(name, [])
    tables.write(name, empty, tmp_path)
    pd.testing.assert_frame_equal(tables.read(name, tmp_path), empty)


@pytest.mark.parametrize("name", tables.TABLES)
def test_parquet_carries_unit_and_meaning(name, tmp_path):
    schema = pq.read_schema(tables.write(name, tables.from_rows(name, []), tmp_path))
    for column in tables.table(name).columns:
        metadata = schema.field(column.name).metadata
        assert metadata[b"unit"].decode() == column.unit
        assert metadata[b"meaning"].decode() == column.meaning
        assert schema.field(column.name).nullable == column.nullable
    assert schema.metadata[b"table"].decode() == name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lost": 1}, "column lost, row 1 .* is 1; allowed: True or False"),
        ({"lost": "True"}, "column lost, row 1 .* is 'True'; allowed: True or False"),
        ({"lost": None}, "column lost, row 1 .* is None; allowed: True or False"),
        ({"rtt_ms": -1.0}, "column rtt_ms, row 1 .* is -1.0; allowed: finite numbers from 0 or null"),
        ({"rtt_ms": float("inf")}, "column rtt_ms, row 1 .*finite numbers"),
        ({"rtt_ms": 10**400}, "column rtt_ms, row 1 .*finite numbers"),
        ({"rtt_ms": "1.5"}, "column rtt_ms, row 1 .*finite numbers"),
        ({"rtt_ms": True}, "column rtt_ms, row 1 .*finite numbers"),
        ({"duplicate": None}, "column duplicate, row 1 .*True or False"),
        ({"sequence": 1.5}, "column sequence, row 1 .*whole numbers"),
        ({"sequence": 2**63}, "column sequence, row 1 .*whole numbers"),
        ({"sequence": True}, "column sequence, row 1 .*whole numbers"),
        ({"sequence": -1}, "column sequence, row 1 .*from 0"),
        ({"ttl": 256}, "column ttl, row 1 .*from 0 to 255 or null"),
        ({"attempt": 0}, "column attempt, row 1 .*from 1"),
        ({"error": 5}, "column error, row 1 .*text or null"),
        ({"error": "\ud800"}, "column error, row 1 .*text or null"),
        ({"rtt": 1}, "has extra rtt; allowed: run_id, test_id"),
    ],
)
def test_a_bad_row_is_refused(change, message):
    with pytest.raises(ParameterError, match=f"^table echoes.*{message}"):
        tables.from_rows("echoes", [ECHO, ECHO | change])


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("lost", np.array([0, 1]), "True or False"),
        ("lost", np.array([0.0, 1.0]), "True or False"),
        ("sequence", np.array([1, 2**63], dtype="uint64"), "row 1 .*whole numbers"),
        ("sequence", np.array([True, False]), "row 0 .*whole numbers"),
        ("sequence", np.array([1.0, 2.0**60]), "row 1 .*whole numbers"),
        ("sequence", np.array([1.0, 1.25]), "row 1 .*whole numbers"),
        ("sequence", np.array(["1", "2"]), "row 0 .*whole numbers"),
        ("rtt_ms", np.array(["1", "2"]), "row 0 .*finite numbers"),
        ("rtt_ms", np.array([True, False]), "row 0 .*finite numbers"),
        ("error", np.array([1.0, 2.0]), "row 0 .*text"),
        ("source_file", np.array(["a", None], dtype=object), "row 1 .* allowed: text"),
    ],
)
def test_a_bad_column_is_refused(column, values, message):
    frame = tables.from_rows("echoes", [ECHO, ECHO])
    with pytest.raises(ParameterError, match=f"^table echoes, column {column}, .*{message}"):
        tables.validate("echoes", frame.assign(**{column: values}))


def test_lossless_conversions_are_made():
    frame = pd.DataFrame([ECHO | {"ttl": 64}, ECHO | {"ttl": None}]).assign(sequence=[1.0, 2.0])
    frame["lost"] = frame.lost.astype(object)
    frame["responder"] = pd.Categorical(["10.0.0.1", None])
    for name in set(tables.table("echoes").names) - set(frame.columns):
        frame[name] = None
    echoes = tables.validate("echoes", frame.set_index(pd.Index([7, 7])))
    assert echoes.sequence.tolist() == [1, 2] and echoes.sequence.dtype == "Int64"
    assert echoes.ttl.tolist() == [64, pd.NA] and echoes.lost.dtype == bool
    assert list(echoes.columns) == tables.table("echoes").names and list(echoes.index) == [0, 1]


@pytest.mark.parametrize(
    "value",
    ["2026-11-21 10:00:00", "yesterday", "2026-13-01T00:00:00Z", 5, pd.Timestamp("2026-11-21"), "9999-99-99T00:00Z"],
)
def test_a_time_without_its_zone_is_refused(value):
    row = a_row("tests") | {"started_at_utc": value}
    with pytest.raises(ParameterError, match=r"column started_at_utc, row 0 .*times with a time zone"):
        tables.from_rows("tests", [row])


def test_times_are_brought_to_utc():
    row = a_row("tests") | {"started_at_utc": "2026-11-21T10:00:00+02:00", "ended_at_utc": None}
    started = tables.from_rows("tests", [row]).started_at_utc[0]
    assert started.isoformat() == "2026-11-21T08:00:00+00:00"


def test_one_of_the_allowed_texts():
    with pytest.raises(
        ParameterError, match=r"column outcome, row 0 .*is 'lost'; allowed: done or failed or interrupted"
    ):
        tables.from_rows("tests", [a_row("tests") | {"outcome": "lost"}])


def test_columns_missing_extra_or_twice_are_named():
    frame = tables.from_rows("echoes", [ECHO])
    with pytest.raises(ParameterError, match=r"table echoes lacks rtt_ms, lost and has extra rtt; allowed:"):
        tables.validate("echoes", frame.drop(columns=["rtt_ms", "lost"]).assign(rtt=1))
    with pytest.raises(ParameterError, match="has a repeated column"):
        tables.validate("echoes", pd.concat([frame, frame.rtt_ms], axis=1))
    with pytest.raises(ParameterError, match="table is 'echos'; allowed: 'broker_actions', 'detection_runs'"):
        tables.validate("echos", frame)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tables.write("echoes", tables.from_rows("echoes", [ECHO]), tmp_path)
    before = path.read_bytes()

    def fails(arrow, temporary, **options):
        Path(temporary).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", fails)
    with pytest.raises(KeyboardInterrupt):
        tables.write("echoes", tables.from_rows("echoes", []), tmp_path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_reading_says_what_is_wrong_with_the_file(tmp_path):
    with pytest.raises(RawDataError, match=r"echoes.parquet: expected table echoes, found 'no file'"):
        tables.read("echoes", tmp_path)
    (tmp_path / "echoes.parquet").write_bytes(b"no Parquet")
    with pytest.raises(RawDataError, match=r"echoes.parquet: expected table echoes in Parquet"):
        tables.read("echoes", tmp_path)
    tables.write("links", tables.from_rows("links", []), tmp_path).rename(tmp_path / "echoes.parquet")
    with pytest.raises(RawDataError, match=r"echoes.parquet: expected table echoes in Parquet, found 'table echo"):
        tables.read("echoes", tmp_path)


def test_a_file_that_is_older_than_a_column_is_read(tmp_path):
    path = tables.write("echoes", tables.from_rows("echoes", [ECHO]), tmp_path)
    pq.write_table(pq.read_table(path).drop_columns(["ttl"]), path)
    assert tables.read("echoes", tmp_path).ttl.isna().all()
    pq.write_table(pq.read_table(path).drop_columns(["lost"]), path)
    with pytest.raises(RawDataError, match="table echoes lacks lost"):
        tables.read("echoes", tmp_path)


def test_the_dictionary_is_up_to_date():
    written = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert written == dictionary.data_readme(), "run `.venv/bin/python scripts/data_readme.py > data/README.md`"


def test_the_dictionary_holds_every_column_once():
    text = dictionary.dictionary_markdown()
    for declared in tables.TABLES.values():
        section = text.split(f"### {declared.name}\n")[1].split("\n### ")[0]
        for column in declared.columns:
            assert section.count(f"\n| {column.name} | ") == 1
            assert column.meaning and "|" not in column.meaning and "\n" not in column.meaning
            assert column.unit or column.type in ("text", "flag", "count")
