"""The check of table `pairs` that every analysis starts with; errors name the column and the row."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, refusal
from wanbench.methods.sizes import SIZED, beyond_size

ENDS = ("from_region", "to_region")
TEXTS = (*ENDS, "from_cloud", "to_cloud")
LENGTHS = ("distance_km", "light_rtt_ms")


def check_pairs(pairs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """
    The table with a fresh index and float64 columns of numbers, NaN for missing values.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`, as `ingest.summarise_pairs` makes it.
    columns : str
        The columns that the analysis needs. Names of regions and clouds must be text in every row; all others numbers
        or missing, of a size in `sizes.SIZES`; `distance_km` and `light_rtt_ms` also finite and not negative.

    Raises
    ------
    ParameterError
        If `pairs` is not a DataFrame or lacks columns, or for the first row with an invalid value.
    """
    rows = check_columns("pairs", pairs, columns).reset_index(drop=True)
    numbers = {}
    for name in dict.fromkeys(columns):
        if name in TEXTS:
            texts = rows[name].map(lambda value: isinstance(value, str) and bool(value)).to_numpy(dtype=bool)
            _refuse(rows, name, ~texts, "a name")
            continue
        try:
            value = pd.to_numeric(rows[name], errors="coerce").astype("float64")
        except TypeError:  # objects such as lists, which pandas cannot coerce
            value = pd.Series(np.nan, index=rows.index)
        _refuse(rows, name, (value.isna() & rows[name].notna()).to_numpy(), "a number")
        if name in LENGTHS:
            _refuse(rows, name, ((value < 0) | np.isinf(value)).to_numpy(), "a finite number of at least 0")
        _refuse(rows, name, beyond_size(value), SIZED)
        numbers[name] = value
    return rows.assign(**numbers)


def _refuse(rows: pd.DataFrame, name: str, bad: np.ndarray, allowed: str) -> None:
    if not bad.any():
        return
    at = int(np.flatnonzero(bad)[0])
    row = rows.loc[at]
    ends = [str(row[end]) for end in ENDS if end in rows and end != name]
    where = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
    more = f"; {int(bad.sum()) - 1:,} more rows have the same fault" if bad.sum() > 1 else ""
    raise refusal(f"{name} in row {at} of table pairs{where}", row[name], allowed + more)
