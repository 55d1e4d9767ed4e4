"""Damaged latency matrices end in tables or in an error."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_importers_matrix import MARKDOWN, PLAIN

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.read.importers import read_matrix
from wanbench.regions import catalogue


@contextmanager
def rows_only():
    """Rows as they are before they become tables, which takes most of the time."""
    with (
        patch("wanbench.read.importers.matrix.finished", lambda found: found),
        patch.object(tables, "from_rows", lambda name, rows: list(rows)),
    ):
        yield


NAMES = set(catalogue()["name"])


ODDITIES = [
    ",", ";", "\t", '"', "\n", "\n\n", "|", "-", "１", "\u202e", "é", "\x00", "\ufeff", "1e308", "nan", "9" * 50, "0,5",
    "1,204", " ms", "us-east-1", "Tokyo", "AWS", "(", "# ", "Average (ms)", "=HYPERLINK(1)", "-1", "\r", "|-|-|\n",
]  # fmt: skip


@pytest.mark.fuzz
@given(
    st.sampled_from([PLAIN, MARKDOWN]),
    st.lists(st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 30), st.sampled_from(ODDITIES)), max_size=4),
    st.sampled_from([None, "aws", "ibm"]),
)
def test_damaged_files_end_in_tables_or_in_an_error(tmp_path, text, damage, cloud):
    """Whatever is read comes from the line that its test names, and leads from one region to another."""
    for at, length, odd in damage:
        text = text[:at] + odd + text[at + length :]
    path = tmp_path / "latency.csv"
    path.write_bytes(text.encode())
    try:
        with rows_only():
            found = read_matrix(path, cloud=cloud, statistic="mean")
    except ParameterError as error:
        assert "transposed is not given" in str(error)
        return
    except RawDataError as error:
        assert error.expected and (error.line_number is None or 1 <= error.line_number <= text.count("\n") + 2)
        return
    if len(text) % 20 == 0:
        for name, values in found.items():
            tables.from_rows(name, values)
    lines = text.replace("\r", "\n").count("\n") + 1
    assert found["pings"] and len({ping["test_id"] for ping in found["pings"]}) == len(found["tests"])
    for ping in found["pings"]:
        ends = ping["from_region"], ping["to_region"]
        assert ends[0] != ends[1] and set(ends) <= NAMES
        assert cloud is None or all(end.startswith(f"{cloud}:") for end in ends)
        assert 2 <= int(ping["test_id"].split(":")[1]) <= lines and 0 <= ping["mean_rtt_ms"] < 1e7


@pytest.mark.fuzz
@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes_end_in_an_error(tmp_path, data):
    path = tmp_path / "latency.csv"
    path.write_bytes(data)
    with pytest.raises(RawDataError):
        read_matrix(path, statistic="mean")
