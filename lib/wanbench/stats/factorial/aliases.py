"""Which effects the runs of a design cannot tell apart (Box, Hunter & Hunter 2005, chapter 6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from ...errors import ParameterError

SAME = 1 - 1e-9
NOTHING = 1e-6


def alias_table(
    runs: pd.DataFrame, factors: Sequence[str], *, effects: int = 2, up_to: int = 3
) -> pd.DataFrame:
    """
    One row per effect: what else its estimate stands for.

    Read off the runs themselves, so that missing ones count. `aliased_with` lists effects that vary with it alike, with
    a minus where they vary the other way; `mixed_with` those that are partly mixed up with it, with their correlation.
    Both are "" where the effect stands alone.

    Parameters
    ----------
    runs : DataFrame
        A row per run.
    factors : sequence of str
        Its columns; the least and the greatest level (in the order of sorting) are -1 and 1, those between lie as far
        apart as their ranks.
    effects, up_to : int
        Greatest number of factors in an effect that gets a row, and in one that is looked for.

    Examples
    --------
    >>> from wanbench.designs import factorial
    >>> half = factorial({name: [0, 1] for name in "abc"}, fraction={"c": "ab"}, replicates=1)
    >>> alias_table(half, "abc").set_index("effect").aliased_with.to_dict()
    {'a': 'b:c', 'b': 'a:c', 'c': 'a:b', 'a:b': 'c', 'a:c': 'b', 'b:c': 'a'}
    """
    factors = list(factors)
    missing = [name for name in factors if name not in runs]
    if missing or not 1 <= effects <= up_to:
        raise ParameterError(
            f"effects={effects}, up_to={up_to}: from 1, the second no less than the first"
            if not missing
            else f"the runs lack {', '.join(missing)}"
        )
    codes = {name: _code(runs[name]) for name in factors}
    terms = [term for size in range(1, up_to + 1) for term in combinations(factors, size)]
    matrix = np.column_stack([np.prod([codes[name] for name in term], axis=0) for term in terms])
    matrix = matrix - matrix.mean(axis=0)
    length = np.sqrt((matrix**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        together = np.nan_to_num((matrix.T @ matrix) / np.outer(length, length))
    rows = []
    for j, term in enumerate(terms):
        if len(term) > effects:
            continue
        others = [k for k in range(len(terms)) if k != j]
        same = [k for k in others if abs(together[j, k]) >= SAME]
        partly = [k for k in others if NOTHING < abs(together[j, k]) < SAME]
        rows.append(
            {
                "effect": ":".join(term),
                "aliased_with": ", ".join(
                    ("-" if together[j, k] < 0 else "") + ":".join(terms[k]) for k in same
                ),
                "mixed_with": ", ".join(f"{':'.join(terms[k])} ({together[j, k]:.2f})" for k in partly),
            }
        )
    return pd.DataFrame(rows)


def _code(values: pd.Series) -> np.ndarray:
    ranks = np.unique(values.astype(object).to_numpy().astype(str) if values.dtype == object else values.to_numpy(),
                      return_inverse=True)[1].astype(float)  # fmt: skip
    return 2 * ranks / max(ranks.max(), 1.0) - 1
