import math

import pytest

from wanbench import formatting


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text"),
    [
        (14.2371, 13.912, 14.553, "ms", ("14.24 ms", "13.91 to 14.55")),
        (0.663, 0.651, 0.676, "fraction", ("66.3 %", "65.1 to 67.6")),
        (2.9e6, 2.3e6, 3.6e6, "bytes", ("2.90 MB", "2.30 to 3.60")),
        (2500, 1800, math.inf, "km", ("2,500 km", "at least 1,800")),
        (-12345, -12900, -11800, "", ("-12,340", "-12,900 to -11,800")),
        (5.0, 5.0, 5.0, "ms", ("5.00 ms", "5.00 to 5.00")),
        (math.nan, math.nan, math.nan, "ms", ("unknown", "")),
        (math.nan, 3e8, math.inf, "bit/s", ("unknown", "at least 300")),
        (0.0, -1.0, 1.0, "ms", ("0.0 ms", "-1.0 to 1.0")),
        (0.0004, math.nan, math.nan, "fraction", ("0.0400 %", "")),
    ],
)
def test_value_and_interval_share_scale_and_precision(value, low, high, unit, text):
    assert formatting.interval(value, low, high, unit) == text


def test_a_number_reads_the_same_once_it_is_stored():
    value, low, high = 14.6928, 14.650912, 14.734488
    stored = [formatting.rounded(number) for number in (value, low, high)]
    assert formatting.interval(value, low, high, "ms") == formatting.interval(*stored, "ms")


def test_a_tiny_interval_does_not_invent_digits():
    assert formatting.interval(1234.5678, 1234.56779, 1234.56781, "ms") == ("1,235 ms", "1,235 to 1,235")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_rounded_to_none(value):
    assert formatting.rounded(value) is None


def test_rounded_keeps_six_digits_of_small_and_large_numbers():
    assert formatting.rounded(1.23456789e-9) == 1.23457e-9
    assert formatting.rounded(123456789.0) == 123457000.0
