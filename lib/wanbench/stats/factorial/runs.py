"""The runs of a factorial experiment out of a tidy table: what can be used, one row per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import count


def usable_rows(
    observations, response, factors, contrasts, run, block, offsets
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, tuple]]:
    """The rows with all columns and a positive response, the others with their reason, and the levels of contrasts."""
    names = [response, *factors, *(name for name in (run, block) if name)]
    missing = [name for name in names if name not in observations.columns]
    if missing:
        listed = ", ".join(map(str, observations.columns))
        raise ParameterError(f"the observations lack {', '.join(missing)}; they have {listed}")
    for what, given in (("offsets", offsets), ("contrasts", contrasts)):
        unknown = [name for name in given if name not in factors]
        if unknown:
            raise ParameterError(f"{what} of {', '.join(unknown)}; the factors are {', '.join(factors)}")
    reason = pd.Series(None, index=observations.index, dtype=object)
    values = pd.to_numeric(observations[response], errors="coerce")
    reason[~(values > 0) | ~np.isfinite(values)] = f"where {response} is no positive number"
    for name in names:
        reason[observations[name].isna()] = f"without {name}"
    left_out = observations.assign(reason=reason)[reason.notna()].reset_index(drop=True)
    rows = observations.assign(**{response: values})[reason.isna()].reset_index(drop=True)
    why = ", ".join(f"{n:,} {each}" for each, n in sorted(left_out.reason.value_counts().items()))
    if rows.empty:
        raise ParameterError(
            f"no row is left of {count(len(observations), 'row')}{f': {why}' if why else ''}"
        )
    for name in factors:
        if rows[name].nunique() < 2:
            had = observations[name].nunique()
            before = (
                f" in the rows in use; {count(had, 'level')} with those left out ({why})" if had > 1 else ""
            )
            raise ParameterError(f"factor {name} has one level only{before}; it must vary")
    levels = {}
    for name in factors:
        words = not pd.api.types.is_numeric_dtype(rows[name].dtype)
        if name in contrasts or words:
            levels[name] = _two_levels(name, rows[name], contrasts)
            continue
        values = rows[name].astype("float64") + offsets.get(name, 0.0)
        if not (values > 0).all():
            raise ParameterError(
                f"factor {name} has the level {rows[name].min():g}, which has no logarithm; compare its two levels, "
                f"contrasts=[{name!r}], or give it an offset: offsets={{{name!r}: ...}}"
            )
    return rows, left_out, levels


def _two_levels(name: str, values: pd.Series, contrasts: Mapping | Sequence) -> tuple:
    there = sorted(values.unique().tolist())
    given = contrasts[name] if isinstance(contrasts, Mapping) and name in contrasts else there
    if len(there) != 2 or set(given) != set(there):
        asked = "" if given == there else f", asked for were {', '.join(map(str, given))}"
        raise ParameterError(
            f"factor {name} has the levels {', '.join(map(str, there))}{asked}; a contrast takes two"
        )
    return tuple(given)


def per_run(rows, response, factors, run, block) -> pd.DataFrame:
    """A row per run: the factors, the mean response as `_response`, the block as `_block` (0 without)."""
    numbers = [name for name in factors if pd.api.types.is_numeric_dtype(rows[name].dtype)]
    frame = rows[factors].astype(dict.fromkeys(numbers, "float64"))
    frame = frame.assign(_response=rows[response].astype("float64"))
    frame["_block"] = rows[block] if block else 0
    if not run:
        return frame
    groups = frame.assign(_run=rows[run]).groupby("_run")
    changing = groups[[*factors, "_block"]].nunique().max(axis=1)
    if (changing > 1).any():
        raise ParameterError(f"run {changing.idxmax()} has several levels of a factor, or several blocks")
    found = groups[[*factors, "_block"]].first()
    return found.assign(_response=groups._response.mean()).reset_index(drop=True)
