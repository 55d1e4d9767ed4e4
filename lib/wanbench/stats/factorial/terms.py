"""Factors of an experiment as columns of a design: logarithms, two-level contrasts, and their products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import quantity

MOST_ORDER = 3
UNITS = {"delay_ms": "ms", "jitter_ms": "ms", "rate_bps": "bit/s", "loss": "fraction", "batch_bytes": "bytes"}


@dataclass(frozen=True)
class Factor:
    """
    A factor and its code: its logarithm less the middle of the design, or -1/2 and 1/2 for the two levels of a
    contrast.

    `levels` are the two of a contrast, low first; () for a logarithm, to which `offset` is added before. `ends` are the
    least and the greatest level of a logarithm.
    """

    name: str
    middle: float = 0.0
    offset: float = 0.0
    levels: tuple = ()
    ends: tuple = ()

    @property
    def is_contrast(self) -> bool:
        return bool(self.levels)

    def code(self, values) -> np.ndarray:
        """Codes of values of the factor."""
        if self.is_contrast:
            return np.where(pd.Series(values).astype(object).to_numpy() == self.levels[1], 0.5, -0.5)
        return np.log(np.asarray(values, dtype=float) + self.offset) - self.middle

    @property
    def step(self) -> str:
        """
        What a contrast compares, in words.

        >>> Factor("acks", levels=("1", "all")).step
        'acks all over 1'
        """
        low, high = self.said
        return f"{self.name} {high} over {low}"

    @property
    def span(self) -> str:
        """
        The levels of a logarithm, from end to end.

        >>> Factor("rate_bps", ends=(1e7, 1e8)).span
        '10.0 Mbit/s to 100 Mbit/s'
        """
        return " to ".join(quantity(each, UNITS.get(self.name, "")) for each in self.ends)

    @property
    def said(self) -> tuple[str, ...]:
        """The levels in words, low first."""
        return tuple(f"{each:g}" if isinstance(each, (int, float)) else str(each) for each in self.levels)


def factors_of(
    runs: pd.DataFrame, names: Sequence[str], contrasts: Mapping[str, tuple], offsets
) -> list[Factor]:
    """The factors with the middle of the design."""
    found = []
    for name in names:
        if name in contrasts:
            found.append(Factor(name, levels=tuple(contrasts[name])))
            continue
        offset = float(offsets.get(name, 0.0))
        logs = np.log(runs[name].astype("float64") + offset)
        ends = (float(runs[name].min()), float(runs[name].max()))
        found.append(Factor(name, float(logs.min() + logs.max()) / 2, offset, ends=ends))
    return found


def chosen_terms(names: list[str], interactions) -> list[tuple[str, ...]]:
    """The interactions asked for: "all" pairs, "estimable" ones, all up to an order, or those that are named."""
    if len(set(names)) != len(names) or not names:
        raise ParameterError(f"factors {', '.join(names) or 'none'}: one or more, each once")
    whole = isinstance(interactions, int) and not isinstance(interactions, bool)
    if isinstance(interactions, str) or whole:
        order = interactions if whole else 2
        if (not whole and interactions not in ("all", "estimable")) or not 1 <= order <= MOST_ORDER:
            raise ParameterError(
                f'interactions={interactions!r}: "all", "estimable", an order from 1 to {MOST_ORDER}, or tuples of '
                "factors"
            )
        return [term for size in range(2, order + 1) for term in combinations(names, size)]
    terms = [tuple(term) for term in interactions]
    wrong = [
        term for term in terms if len(term) < 2 or len(set(term)) != len(term) or not set(term) <= set(names)
    ]
    if wrong or len({frozenset(term) for term in terms}) != len(terms):
        raise ParameterError(
            f"interactions {terms!r}: pairs (or more) of different ones of {', '.join(names)}, each once"
        )
    return terms


def coded(factors: Sequence[Factor], rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """The codes of each factor at each row."""
    return {factor.name: factor.code(rows[factor.name]) for factor in factors}


def columns(codes: Mapping[str, np.ndarray], terms: Sequence[tuple[str, ...]]) -> np.ndarray:
    """The design: a constant, each factor, each product; (rows, 1 + factors + terms)."""
    n = len(next(iter(codes.values())))
    products = [np.prod([codes[name] for name in term], axis=0) for term in terms]
    return np.column_stack([np.ones(n), *codes.values(), *products])


def with_blocks(design: np.ndarray, blocks) -> np.ndarray:
    """The design with a level of its own for each block, on average none."""
    if blocks is None:
        return design
    levels = pd.get_dummies(blocks, dtype=float).to_numpy()
    return np.column_stack([design, (levels - levels.mean(axis=0))[:, 1:]])


def slopes(
    name: str, codes: Mapping[str, np.ndarray], terms: Sequence[tuple[str, ...]], n_columns: int
) -> np.ndarray:
    """What the coefficients must be multiplied by to give the slope along one factor's code: (rows, columns)."""
    names = list(codes)
    n = len(codes[name])
    found = np.zeros((n, n_columns))
    found[:, 1 + names.index(name)] = 1.0
    for j, term in enumerate(terms):
        if name in term:
            found[:, 1 + len(names) + j] = np.prod([codes[each] for each in term if each != name], axis=0)
    return found


def estimable(codes, terms, blocks) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The terms that the runs tell apart, taken in their order, and the others."""
    kept, dropped = [], []
    rank = np.linalg.matrix_rank(with_blocks(columns(codes, []), blocks))
    for term in terms:
        with_it = np.linalg.matrix_rank(with_blocks(columns(codes, [*kept, term]), blocks))
        (kept if with_it > rank else dropped).append(term)
        rank = max(rank, with_it)
    return kept, dropped
