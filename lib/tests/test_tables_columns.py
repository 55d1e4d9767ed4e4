"""Lists are converted at once where they can be, with the same result as value by value."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.tables.columns import KINDS, Column

LISTS = {
    "texts": ["a", "b", "a"],
    "texts with a gap": ["a", None, ""],
    "lone surrogates": ["a", "\ud800"],
    "counts": [3, 1, 2],
    "counts with a gap": [3, None, 2**62],
    "beyond 64 bits": [1, 2**70],
    "beyond a float": [1.0, 10**400],
    "numbers": [0.5, 2.0, np.float64(1.5)],
    "numbers and counts": [0.5, 2, None],
    "not a number": [0.5, np.nan],
    "whole floats": [1.0, 2.0],
    "infinite": [1.0, np.inf],
    "negative": [-1, -2],
    "large": [50, 60],
    "flags": [True, False],
    "flags with a gap": [None, True],
    "flags and counts": [True, 1],
    "times": ["2026-01-01T00:00:00Z", pd.Timestamp("2026-01-01", tz="UTC")],
    "gaps alone": [None, None],
    "no value": [],
}
COLUMNS = [
    Column("x", kind, "", "", nullable=nullable, **more)
    for kind, nullable in product(KINDS, (False, True))
    for more in (
        {},
        {"minimum": None},
        {"maximum": 10},
        *([{"allowed": ("a", "b")}] if kind == "text" else []),
    )
]


def outcome(convert):
    try:
        return convert()
    except ParameterError as error:
        return str(error)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_becomes_what_the_check_of_its_values_makes_of_it(name):
    values = LISTS[name]
    for column in COLUMNS:
        at_once = outcome(lambda column=column: column.of(values, "t"))
        one_by_one = outcome(lambda column=column: column.check(pd.Series(values, dtype=object), "t"))
        if isinstance(one_by_one, str):
            assert at_once == one_by_one, column
        else:
            pd.testing.assert_series_equal(at_once, one_by_one, check_exact=True, check_index_type=False)
