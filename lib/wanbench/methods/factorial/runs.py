"""Select the usable runs of a factorial experiment from a tidy table, and the levels of its factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from wanbench.checks import check_choice, check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.sizes import check_sizes


def usable_runs(
    observations: pd.DataFrame, response: str, factors: list[str], contrasts: Sequence[str], block: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, tuple]]:
    """
    The runs with all columns and a positive response, the rows left out with their reason, and the levels of contrasts.

    Columns: the factors (numbers as float64), `_response` and `_block` (0 without blocks).
    """
    for name in contrasts:
        check_choice("contrast", name, factors)
    rows, left_out = split_rows(observations, response, [*factors, *([block] if block else [])])
    why = reasons(left_out)
    levels = {}
    for name in factors:
        there = sorted(rows[name].unique().tolist())
        if len(there) < 2:
            n_before = observations[name].nunique()
            with_all = f"; {count(n_before, 'level')} with those left out ({why})" if n_before > 1 else ""
            raise ParameterError(f"factor {name} has one level only in the rows in use{with_all}; it must vary")
        if name in contrasts or not is_numeric_dtype(rows[name].dtype):
            if len(there) != 2:
                listed = ", ".join(map(str, there))
                raise ParameterError(f"factor {name} has the levels {listed}; a contrast takes two")
            levels[name] = tuple(there)
        elif not there[0] > 0:
            raise ParameterError(
                f"factor {name} has the level {there[0]:g}, which has no logarithm; compare its two levels: "
                f"contrasts=[{name!r}]"
            )
    numbers = [name for name in factors if is_numeric_dtype(rows[name].dtype)]
    runs = rows[factors].astype(dict.fromkeys(numbers, "float64"))
    runs = runs.assign(_response=rows[response].astype("float64"), _block=rows[block] if block else 0)
    return runs, left_out, levels


def split_rows(observations: pd.DataFrame, response: str, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """
    The rows with a positive response and all of these columns, and the others with their `reason`.

    ParameterError if a column is missing or no row is left.
    """
    check_columns("observations", observations, [response, *names])
    values = pd.to_numeric(observations[response], errors="coerce").astype("float64")
    check_sizes(response, values)
    reason = pd.Series(None, index=observations.index, dtype=object)
    reason[~(values > 0) | ~np.isfinite(values)] = f"where {response} is not a positive number"
    for name in (response, *names):
        reason[observations[name].isna()] = f"without {name}"
    left_out = observations.assign(reason=reason)[reason.notna()].reset_index(drop=True)
    rows = observations.assign(**{response: values})[reason.isna()].reset_index(drop=True)
    if rows.empty:
        why = reasons(left_out)
        raise ParameterError(f"no row is left of {count(len(observations), 'row')}{f': {why}' if why else ''}")
    return rows, left_out


def reasons(left_out: pd.DataFrame) -> str:
    """How many rows were left out, by reason."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(left_out.reason.value_counts().items()))
