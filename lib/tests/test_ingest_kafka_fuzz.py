"""Damaged and invented outputs of Kafka's tools: each ends in valid tables or a RawDataError."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_ingest_fuzz import FREE, damaged

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import kafka_load

SAMPLES = [
    path.read_bytes()[:3000] for path in sorted((Path(__file__).parent / "samples" / "kafka_perf").glob("*.txt"))
]
ODDITIES = [
    "1,600", "1.234.567", "٣", "９", "NaN", "-Infinity", "∞", "1610554583317, -1610554580894", "\u202f", "'", ", ",
    "\t", "\r", "\ufeff", "\x00", "\ud7ff", "99999999999999999999", "-0.0000", "1e308", " records sent, ",
    " steady state", "ms 99.9th.", "In steady state.\n", "0, 0, 0.0000, ", ":{a} : 1.0\n",
    "Warmup first 9 records. Steady state results will print after.\n",
    "[2022-11-16 17:00:42,193] WARN [Producer clientId=a] oh", "Caused by: x.YException: z\n\tat a.b(c)\n",
    "time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n",
    "5 records sent, 1.0 records/sec (0.00 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n",
]  # fmt: skip


@st.composite
def odd(draw):
    """A real file with something of these tools' own put into it, or in the place of a number."""
    data = draw(damaged(SAMPLES))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            at = next((n for n in range(at, len(data)) if data[n : n + 1].isdigit()), at)
        data = data[:at] + draw(st.sampled_from(ODDITIES)).encode() + data[at + draw(st.integers(0, 2)) :]
    return data


def rows_of(data):
    """The rows of a file, as dictionaries."""
    return kafka_load.output_of([kafka_load._text(data)]).rows(0)


@pytest.mark.fuzz
def test_kafka_load():
    """Rows are put into tables all together, which is a hundred times cheaper."""
    found = {}

    @given(st.one_of(damaged(SAMPLES), odd(), odd(), FREE))
    @example(SAMPLES[0].decode().encode("utf-16"))
    @example(b"\xff\xfe\x00\xd8\n")
    def read(data):
        try:
            rows = rows_of(data)
        except RawDataError as error:
            assert error.expected and (error.line_number is None or 1 <= error.line_number <= data.count(b"\n") + 1)
            return
        assert any(rows.get(name) for name in ("producers", "consumers"))
        for name, more in rows.items():
            found.setdefault(name, []).extend(row | {"source_file": "a"} for row in more)

    read()
    for whole in SAMPLES:
        read.hypothesis.inner_test(whole)
    assert set(found) == {"producers", "producer_windows", "consumers", "consumer_windows", "metrics"}
    for name, rows in found.items():
        tables.from_rows(name, rows)
