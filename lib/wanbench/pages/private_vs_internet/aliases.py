"""Effects that the runs of a design cannot separate (Box, Hunter & Hunter 2005, chapter 6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from wanbench.checks import check_columns

ALIASED = 1 - 1e-9
"""From this correlation on, two effects are equal up to rounding."""
UNRELATED = 1e-6
"""Up to this correlation two effects are independent up to rounding."""
LISTED_ORDER = 2
"""Effects of up to this many factors get a row."""
SEARCHED_ORDER = 3
"""Effects of up to this many factors are searched for aliases; higher orders are assumed negligible."""


def alias_table(runs: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """
    One row per main effect and two-factor interaction, with the effects it is confounded with.

    Computed from the runs themselves, so missing ones count. `aliased_with` lists fully confounded effects, with a
    minus for opposite sign; `mixed_with` partly correlated terms, with the correlation. Both are "" for a clear effect.

    Parameters
    ----------
    runs : DataFrame
        A row per run.
    factors : sequence of str
        Columns of `runs`. The smallest and the largest level (in sorted order) are coded -1 and 1, levels between them
        evenly by rank.

    Examples
    --------
    >>> from wanbench.designs import factorial
    >>> half = factorial({name: [0, 1] for name in "abc"}, fraction={"c": "ab"}, replicates=1)
    >>> alias_table(half, "abc").set_index("effect").aliased_with.to_dict()
    {'a': 'b:c', 'b': 'a:c', 'c': 'a:b', 'a:b': 'c', 'a:c': 'b', 'b:c': 'a'}
    """
    factors = list(factors)
    check_columns("runs", runs, factors)
    codes = {name: _code(runs[name]) for name in factors}
    terms = [term for order in range(1, SEARCHED_ORDER + 1) for term in combinations(factors, order)]
    names = [":".join(term) for term in terms]
    matrix = np.column_stack([np.prod([codes[name] for name in term], axis=0) for term in terms])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.atleast_2d(np.nan_to_num(np.corrcoef(matrix, rowvar=False)))
    np.fill_diagonal(correlation, 0.0)
    rows = []
    for term, name, own in zip(terms, names, correlation, strict=True):
        if len(term) <= LISTED_ORDER:
            related = [(other, r) for other, r in zip(names, own, strict=True) if abs(r) > UNRELATED]
            aliased = [f"{'-' if r < 0 else ''}{other}" for other, r in related if abs(r) >= ALIASED]
            mixed = [f"{other} ({r:.2f})" for other, r in related if abs(r) < ALIASED]
            rows.append((name, ", ".join(aliased), ", ".join(mixed)))
    return pd.DataFrame(rows, columns=["effect", "aliased_with", "mixed_with"])


def _code(values: pd.Series) -> np.ndarray:
    ranks = pd.factorize(values.astype(str) if values.dtype == object else values, sort=True)[0].astype(float)
    return 2 * ranks / max(ranks.max(), 1.0) - 1
