"""Damaged and invented files: each ends in a valid table or in a RawDataError, nothing else."""

import json
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import globalping, iperf3, mtr, ping, ripe_atlas
from wanbench.read.ingest.ping import scan
from wanbench.read.ingest.rows import joined

FOLDER = Path(__file__).parent / "samples"
PINGS = [path.read_bytes() for path in sorted((FOLDER / "ping").glob("*.txt"))]
READABLE = [path.with_suffix(".txt").read_bytes() for path in sorted((FOLDER / "ping").glob("*.csv"))]
TEXTS = [path.read_bytes() for path in sorted((FOLDER / "iperf3").glob("*.txt"))]
DOCUMENTS = [path.read_bytes() for path in sorted((FOLDER / "iperf3").glob("*.json")) if "deep" not in path.name]
PARSED = json.loads((FOLDER / "iperf3" / "v3.12_tcp_bidir.json").read_bytes())
ODDITIES = [
    "９", "٣", "\u202e", "é", "\x00", "\x1b[31m", "\ufeff", "\U0001f600", "\r", "\n\n", "\t", " ", "%", "-1", "1,5",
    "99999999999999999999", "1e308", "nan", "-nan", "inf", "0x10", "65536", "4294967295", '"', "{", "}", "[", "]]",
    "null", "true", "\\ud800", "PING x (y) 56(84) bytes of data.\n", "\n--- x ping statistics ---\n",
    "64 bytes from ::1: icmp_seq=1 ttl=64 time=0.1 ms\n", "no answer yet for icmp_seq=9\n", "Request timed out.\n",
    "9 packets transmitted, 9 received, 0% packet loss, time 1ms\n",
]  # fmt: skip


@st.composite
def damaged(draw, samples):
    """A real file, cut, flipped, shuffled, spliced, or with something odd put into it, one to three times."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        how = draw(st.integers(0, 9))
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        if how == 0:
            data = data[:at]
        elif how == 1:
            data = data[at:]
        elif how == 2:
            flip = draw(st.integers(1, 255))
            data = data[:at] + bytes(byte ^ flip for byte in data[at : at + 1]) + data[at + 1 :]
        elif how in (3, 4):
            data = data[:at] + draw(st.sampled_from(ODDITIES)).encode() + data[at:]
        elif how == 5:
            digit = next((n for n in range(at, len(data)) if data[n : n + 1].isdigit()), at)
            data = data[:digit] + draw(st.sampled_from(ODDITIES)).encode() + data[digit + 1 :]
        elif how == 6:
            other = draw(st.sampled_from(samples))
            data = data[:at] + other[draw(st.integers(0, len(other))) :]
        else:
            data = relined(draw, data, how)
    return data


def relined(draw, data, how):
    """The file with a line twice, without a line, or with two lines exchanged."""
    lines = data.split(b"\n")
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    if how == 7:
        lines.insert(other, lines[one])
    elif how == 8:
        del lines[one]
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


FREE = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
NUMBERS = st.one_of(
    st.integers(-5, 5), st.integers(), st.floats(), st.sampled_from([2**31, 2**53, 2**63, 10**18, 10**30, 1e308])
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def rewritten(draw):
    """A real document in which members have been replaced, renamed or removed, and written again."""

    def change(value, left):
        if not left or not isinstance(value, dict | list) or not value:
            return draw(JSON)
        if isinstance(value, list):
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], change(value[at], left - 1), *value[at + 1 :]]
        name = draw(st.sampled_from(sorted(value)))
        rest = {key: member for key, member in value.items() if key != name}
        other = draw(st.sampled_from([name] * 5 + sorted(value)))
        return rest if draw(st.integers(0, 9)) == 0 else rest | {other: change(value[name], left - 1)}

    document = PARSED
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        document = change(document, draw(st.sampled_from((1, 2, 3, 4, 6, 6, 6, 6))))
    return json.dumps(document).encode()


def whole(name, core):
    """The core columns as a whole table, which must be valid."""
    frame = core.assign(**{column.name: None for column in tables.CONTEXT}).assign(source_file="a")
    return tables.validate(name, frame)


@pytest.mark.fuzz
@given(st.one_of(damaged(READABLE), damaged(READABLE), damaged(PINGS), FREE))
def test_ping(data):
    outcomes = []
    for fast in (False, True):
        try:
            with patch.object(scan, "MIN_LINES", 1):
                outcomes.append(ping.read(data, fast=fast)["echoes"])
        except RawDataError as error:
            assert error.expected and (error.line_number is None or 1 <= error.line_number <= data.count(b"\n") + 1)
            outcomes.append(str(error))
    careful, fast = outcomes
    assert type(careful) is type(fast)
    if isinstance(careful, str):
        assert careful == fast
        return
    frame = careful.to_pandas()
    pd.testing.assert_frame_equal(frame, fast.to_pandas())
    rows = whole("echoes", frame)
    assert (rows.rtt_ms.isna() | ~rows.lost).all() and (~rows.duplicate | ~rows.lost).all()
    assert not rows[~rows.duplicate].duplicated(["ping", "sequence"]).any()
    order = rows[["ping", "sequence"]]
    pd.testing.assert_frame_equal(order, order.sort_values(["ping", "sequence"], kind="stable"))


@pytest.mark.fuzz
@given(
    st.one_of(
        damaged(DOCUMENTS),
        damaged(DOCUMENTS),
        damaged(TEXTS),
        rewritten(),
        JSON.map(lambda v: json.dumps(v).encode()),
        FREE,
    )
)
def test_iperf3(data):
    try:
        found = iperf3.read(data)
    except RawDataError as error:
        assert error.expected and (error.line_number is None or 1 <= error.line_number <= data.count(b"\n") + 1)
        return
    assert found["transfers"]
    for name, rows in found.items():
        tables.from_rows(name, [row | {"source_file": "a"} for row in rows])


SMALL = {
    tool: [path.read_bytes() for path in sorted((FOLDER / name).iterdir()) if path.suffix in (".json", ".txt")]
    for name, tool in (("globalping", globalping), ("mtr", mtr), ("ripe_atlas", ripe_atlas))
}


@pytest.mark.fuzz
@given(st.data())
def test_small_tools(draw):
    tool = draw.draw(st.sampled_from(list(SMALL)))
    data = draw.draw(
        st.one_of(damaged(SMALL[tool]), damaged(SMALL[tool]), JSON.map(lambda v: json.dumps(v).encode()), FREE)
    )
    try:
        found = tool.read(data)
    except RawDataError as error:
        assert error.expected
        return
    context = {column.name: None for column in tables.CONTEXT} | {"source_file": "a"}
    for row in found.pop("unread", []):
        tables.from_rows("unread", [row | {"path": "a"}])
    for name, rows in found.items():
        assert len(joined(name, [(rows, context)]))
