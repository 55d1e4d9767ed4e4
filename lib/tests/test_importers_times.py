"""A cell of a latency table as a time."""

import pytest

from wanbench.read.importers.times import milliseconds


@pytest.mark.parametrize(
    "text, decimal, expected",
    [
        ("67", ".", 67.0),
        (" 67.25 ms ", ".", 67.25),
        ("67.25ms", ".", 67.25),
        ("0.067 s", ".", 67.0),
        ("850 µs", ".", 0.85),
        ("850 MS", ".", 850.0),
        (".5", ".", 0.5),
        ("1,204.5", ".", 1204.5),
        ("1 204.5", ".", 1204.5),
        ("1\u202f204,5", ",", 1204.5),
        ("1.204,5", ",", 1204.5),
        ("1'204", ".", 1204.0),
        ("67,3", ",", 67.3),
        ("67.3", None, 67.3),
        ("0", ".", 0.0),
        ("—", ".", None),
        ("N/A", ".", None),
        ("", ".", None),
    ],
)
def test_milliseconds(text, decimal, expected):
    value = milliseconds(text, "ms", decimal)
    assert value is None if expected is None else value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("text", ["67,3", "12,04.5", "1 2", "1.2.3", "+5", "-5", "5-6", "5 ms ms", "5 m", "1,20", "ms"])
def test_what_is_no_time_with_a_decimal_point(text):
    with pytest.raises(ValueError, match="a time"):
        milliseconds(text, "ms", ".")


@pytest.mark.parametrize("text", ["67,3", "1,204", "1,204.5"])
def test_a_comma_needs_a_stated_decimal_mark(text):
    with pytest.raises(ValueError, match="without a comma"):
        milliseconds(text, "ms", None)
