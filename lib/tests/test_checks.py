"""What the checks of parameters take, and that manifests can hold what they return."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from wanbench.checks import check_number
from wanbench.errors import ParameterError


@pytest.mark.parametrize(
    ("given", "whole", "expected"),
    [
        (np.int64(20), True, int),
        (np.uint8(20), False, int),
        (np.float64(20), False, float),
        (np.float32(20), False, float),
        (Fraction(20), False, float),
        (20, False, int),
    ],
)
def test_a_number_of_any_kind_comes_back_as_one_that_json_holds(given, whole, expected):
    value = check_number("seed", given, 0, 100, whole=whole)
    assert isinstance(value, expected) and json.loads(json.dumps(value)) == 20


@pytest.mark.parametrize(
    "given", [True, np.True_, math.nan, -math.inf, "20", None, pd.NA, Decimal(20), np.array(20), np.array([1, 2]), 1j]
)
def test_what_is_no_number_in_range_fails(given):
    with pytest.raises(ParameterError, match=r"^delay_ms is .*; allowed: a number of at least 0"):
        check_number("delay_ms", given, 0)
