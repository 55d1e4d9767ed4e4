"""One check of table `pairs` at the door of every analysis: names the column and the row that cannot be used."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...errors import ParameterError

TEXTS = ("from_region", "to_region", "from_cloud", "to_cloud")
LENGTHS = ("distance_km", "light_rtt_ms")


def check_pairs(pairs: pd.DataFrame, *columns: str, kind: str = "pairs") -> pd.DataFrame:
    """
    The table with a fresh index, its columns of numbers as float64 with NaN for what is missing.

    Parameters
    ----------
    pairs : DataFrame
    columns : str
        What the analysis needs. `from_region`, `to_region`, `from_cloud` and `to_cloud` must be text in every row;
        all others numbers or missing; `distance_km` and `light_rtt_ms` also finite and not negative.
    kind : str
        What the table is called in errors.

    Raises
    ------
    ParameterError
        Names what was given in place of a table, the columns that are missing, or the first row that cannot be used.
    """
    if not isinstance(pairs, pd.DataFrame):
        raise ParameterError(
            f"{kind} is a {type(pairs).__name__}; it must be table {kind}, which ingest.summarise_pairs(tables) makes"
        )
    missing = [name for name in columns if name not in pairs.columns]
    if missing:
        raise ParameterError(
            f"the {kind} lack {', '.join(missing)}; they have {', '.join(map(str, pairs.columns))}"
        )
    rows = pairs.reset_index(drop=True)
    numbers = {}
    for name in dict.fromkeys(columns):
        if name in TEXTS:
            texts = rows[name].map(lambda value: isinstance(value, str) and bool(value)).to_numpy(dtype=bool)
            _refuse(rows, name, ~texts, "a name", kind)
            continue
        try:
            value = pd.to_numeric(rows[name], errors="coerce").astype("float64")
        except TypeError:  # values that have no order with numbers, such as lists
            value = pd.Series(np.nan, index=rows.index)
        _refuse(rows, name, (value.isna() & rows[name].notna()).to_numpy(), "a number", kind)
        if name in LENGTHS:
            _refuse(rows, name, ((value < 0) | np.isinf(value)).to_numpy(), "finite and at least 0", kind)
        numbers[name] = value
    return rows.assign(**numbers)


def _refuse(rows: pd.DataFrame, name: str, bad: np.ndarray, allowed: str, kind: str) -> None:
    if not bad.any():
        return
    at = int(np.flatnonzero(bad)[0])
    row = rows.loc[at]
    ends = [str(row[end]) for end in ("from_region", "to_region") if end in rows and end != name]
    where = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
    more = f"; {int(bad.sum()) - 1:,} more rows like it" if bad.sum() > 1 else ""
    raise ParameterError(f"{kind}, row {at}{where}: {name} must be {allowed}, not {row[name]!r}{more}")
