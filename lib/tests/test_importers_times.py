"""A cell of a latency table as a time, and which sign is its decimal mark."""

import pytest

from wanbench.read.importers.times import decimal_mark, milliseconds


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
        ("67,3", None, 67.3),
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


@pytest.mark.parametrize(
    "texts, likely, expected",
    [
        (["67.3", "12"], False, "."),
        (["12", "fast", ""], False, "."),
        (["67.123", "12.456"], False, "."),
        (["67,123", "12,456"], False, None),
        (["67,123", "12,456"], True, ","),
        (["67,123", "12,4"], False, ","),
        (["67,123", "12.4"], True, "."),
        (["67,3", "12.4"], False, None),
        (["1,204,117"], False, "."),
        (["1.204.117"], False, ","),
        (["0,123"], False, ","),
        (["0.123"], True, "."),
    ],
)
def test_decimal_mark(texts, likely, expected):
    assert decimal_mark(texts, likely) == expected
