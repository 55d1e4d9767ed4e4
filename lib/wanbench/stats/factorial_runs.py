"""The runs of a factorial experiment out of a tidy table: what can be used, one row per run."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from ..errors import ParameterError


def chosen_pairs(factors: list[str], interactions) -> list[tuple[str, str]]:
    """The interactions asked for: pairs of different factors, or all of them."""
    if len(set(factors)) != len(factors) or not factors:
        raise ParameterError(f"factors {', '.join(factors) or 'none'}: one or more, each once")
    if isinstance(interactions, str):
        if interactions != "all":
            raise ParameterError(f'interactions={interactions!r}: "all", or pairs of factors')
        return list(combinations(factors, 2))
    pairs = [tuple(pair) for pair in interactions]
    wrong = [pair for pair in pairs if len(set(pair)) != 2 or not set(pair) <= set(factors)]
    if wrong or len({frozenset(pair) for pair in pairs}) != len(pairs):
        raise ParameterError(
            f"interactions {pairs!r}: pairs of two different ones of {', '.join(factors)}, each once"
        )
    return pairs


def usable_rows(observations, response, factors, run, block, offsets) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows with all columns and a positive response, and the others with their reason."""
    names = [response, *factors, *(name for name in (run, block) if name)]
    missing = [name for name in names if name not in observations.columns]
    if missing:
        listed = ", ".join(map(str, observations.columns))
        raise ParameterError(f"the observations lack {', '.join(missing)}; they have {listed}")
    unknown = [name for name in offsets if name not in factors]
    if unknown:
        raise ParameterError(f"offsets of {', '.join(unknown)}; the factors are {', '.join(factors)}")
    reason = pd.Series(None, index=observations.index, dtype=object)
    reason[~(observations[response] > 0) | ~np.isfinite(observations[response])] = (
        f"where {response} is not positive"
    )
    for name in names:
        reason[observations[name].isna()] = f"without {name}"
    left_out = observations.assign(reason=reason)[reason.notna()].reset_index(drop=True)
    rows = observations[reason.isna()].reset_index(drop=True)
    for name in factors:
        values = rows[name].astype("float64") + offsets.get(name, 0.0)
        if not (values > 0).all():
            raise ParameterError(
                f"factor {name} has the level {rows[name].min():g}, which has no logarithm; give it a small one in its "
                f"place, or an offset: offsets={{{name!r}: ...}}"
            )
        if values.nunique() < 2:
            raise ParameterError(f"factor {name} has one level only; it must vary")
    return rows, left_out


def per_run(rows, response, factors, run, block) -> pd.DataFrame:
    """A row per run: the factors, the mean response as `_response`, the block as `_block` (0 without)."""
    frame = rows[factors].astype("float64").assign(_response=rows[response].astype("float64"))
    frame["_block"] = rows[block] if block else 0
    if not run:
        return frame
    groups = frame.assign(_run=rows[run]).groupby("_run")
    changing = groups[[*factors, "_block"]].nunique().max(axis=1)
    if (changing > 1).any():
        raise ParameterError(f"run {changing.idxmax()} has several levels of a factor, or several blocks")
    found = groups[[*factors, "_block"]].first()
    return found.assign(_response=groups._response.mean()).reset_index(drop=True)
