"""Factors of an experiment as columns of a design: logarithms, two-level contrasts, and their products."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from wanbench.checks import check_choice, check_columns, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, quantity
from wanbench.methods.result import reasons
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.sizes import check_sizes

UNITS = {"delay_ms": "ms", "jitter_ms": "ms", "rate_bps": "bit/s", "loss": "fraction", "batch_bytes": "bytes"}
# Readable names of columns, for sentences and figures; other columns keep their names.
WORDS = {
    "delay_ms": "delay",
    "jitter_ms": "jitter",
    "rate_bps": "rate",
    "batch_bytes": "batch size",
    "batches_per_s": "batches per second",
    "throughput_bps": "throughput",
}
IN_OTHER_BLOCKS = "; for a level in other blocks the error of the blocks' mean (t) is added as squares"
ONE_BLOCK = "no interval: a single block shows no difference between blocks"


@dataclass(frozen=True)
class Factor:
    """
    A factor of an experiment, and how its levels are coded as numbers.

    A numeric factor is coded as its logarithm less `middle`; a contrast between two levels as -1/2 and 1/2.

    middle: The mean of the logarithms of the smallest and the largest level.
    levels: The two levels of a contrast, the low one first; () for a numeric factor.
    ends: The smallest and the largest level of a numeric factor; () for a contrast.
    """

    name: str
    middle: float = 0.0
    levels: tuple[object, ...] = ()
    ends: tuple[float, ...] = ()

    @property
    def is_contrast(self) -> bool:
        return bool(self.levels)

    def code(self, values: np.typing.ArrayLike) -> np.ndarray:
        """Return the numbers that code these values of the factor."""
        if self.is_contrast:
            return np.where(pd.Series(values).astype(object).to_numpy() == self.levels[1], 0.5, -0.5)
        return np.log(np.asarray(values, dtype=float)) - self.middle

    @property
    def step(self) -> str:
        """
        The levels that a contrast compares, as text.

        >>> Factor("acks", levels=("1", "all")).step
        'acks all over 1'
        """
        low, high = self.labels
        return f"{word(self.name)} {high} over {low}"

    @property
    def span(self) -> str:
        """
        The range of a numeric factor, as text.

        >>> Factor("rate_bps", ends=(1e7, 1e8)).span
        '10.0 Mbit/s to 100 Mbit/s'
        """
        return " to ".join(quantity(end, UNITS.get(self.name, "")) for end in self.ends)

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels of a contrast as text, the low one first."""
        return tuple(level_label(self.name, level) for level in self.levels)


def word(name: str) -> str:
    """
    Return the readable name of a factor or response, or `name` itself if it has none.

    >>> word("rate_bps"), word("acks")
    ('rate', 'acks')
    """
    return WORDS.get(name, name)


def effect_words(effects: str) -> str:
    """
    Replace the names of factors in a list of effects by readable ones.

    >>> effect_words("jitter_ms:loss:rate_bps, -delay_ms:acks")
    'jitter × loss × rate, -delay × acks'
    """
    return re.sub(r"\w+", lambda name: word(name[0]), effects).replace(":", " × ")


def level_label(name: str, level: object) -> str:
    """
    Return a level of a factor as text, with its unit.

    >>> level_label("loss", 0.0), level_label("acks", "all"), level_label("rate_bps", 1e7)
    ('0', 'all', '10.0 Mbit/s')
    """
    if not isinstance(level, (int, float, np.number)):
        return str(level)
    return quantity(float(level), UNITS[name]) if level and name in UNITS else f"{level:g}"


def factors_of(runs: pd.DataFrame, names: Sequence[str], contrasts: Mapping[str, tuple[object, ...]]) -> list[Factor]:
    """
    Make a Factor, numeric or a contrast of two levels, for each column in `names`.

    names: The columns of `runs` that hold the factors.
    contrasts: The two levels of each factor that is a contrast, by name.
    """
    factors = []
    for name in names:
        if name in contrasts:
            factors.append(Factor(name, levels=contrasts[name]))
            continue
        ends = (float(runs[name].min()), float(runs[name].max()))
        factors.append(Factor(name, float(np.log(ends).sum()) / 2, ends=ends))
    return factors


def chosen_terms(names: list[str], interactions: Sequence[tuple[str, ...]] | str) -> list[tuple[str, ...]]:
    """
    Return the interactions to fit, each as a tuple of factors.

    names: All factors.
    interactions: "all" (every pair of factors), or tuples of factors.

    Raises ParameterError: a factor is repeated, or an interaction is repeated or has unknown factors.
    """
    if len(set(names)) != len(names) or not names:
        raise refusal("factors", names, "one or more columns, each once")
    if interactions == "all":
        return list(combinations(names, 2))
    terms = [] if isinstance(interactions, str) else [tuple(term) for term in interactions]
    wrong = [term for term in terms if len(term) < 2 or len({*term} & {*names}) != len(term)]
    if isinstance(interactions, str) or wrong or len({frozenset(term) for term in terms}) != len(terms):
        listed = ", ".join(names)
        raise refusal("interactions", interactions, f"'all', or different tuples of two or more of {listed}")
    return terms


def coded(factors: Sequence[Factor], rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return, by name of factor, an array with the code of each row's level."""
    return {factor.name: factor.code(rows[factor.name]) for factor in factors}


def columns(codes: Mapping[str, np.ndarray], terms: Sequence[tuple[str, ...]]) -> np.ndarray:
    """Return the design matrix (rows, 1 + factors + terms): a constant, the factors, and the products in `terms`."""
    n = len(next(iter(codes.values())))
    products = [np.prod([codes[name] for name in term], axis=0) for term in terms]
    return np.column_stack([np.ones(n), *codes.values(), *products])


def with_blocks(design: np.ndarray, blocks: pd.Series | None) -> np.ndarray:
    """Add columns to a design so that each block has an offset, 0 on average over runs. Without blocks, add none."""
    if blocks is None:
        return design
    levels = pd.get_dummies(blocks, dtype=float).to_numpy()
    return np.column_stack([design, (levels - levels.mean(axis=0))[:, 1:]])


def block_half_width(rest: np.ndarray, blocks: pd.Series | None, level: float) -> float:
    """
    Compute half the width of Student's t interval of the mean over blocks, to allow for blocks that were not run.

    rest: Residuals of the runs, with the effects of blocks still in them.

    Returns 0 without blocks, and NaN for a single block.
    """
    if blocks is None:
        return 0.0
    own = pd.Series(np.asarray(rest)).groupby(np.asarray(blocks)).agg(["mean", "size"])
    if len(own) < 2:
        return nan
    error = float(own["mean"].std() * np.sqrt((own["size"] ** 2).sum()) / len(rest))
    return float(t_quantile(level, len(own) - 1)) * error


def slopes(name: str, codes: Mapping[str, np.ndarray], terms: Sequence[tuple[str, ...]], n_columns: int) -> np.ndarray:
    """
    Return weights (rows, columns): weights @ coefficients is each row's slope of the response over the code of `name`.
    """
    names = list(codes)
    weights = np.zeros((len(codes[name]), n_columns))
    weights[:, 1 + names.index(name)] = 1.0
    for j, term in enumerate(terms):
        if name in term:
            others = [codes[other] for other in term if other != name]
            weights[:, 1 + len(names) + j] = np.prod(others, axis=0)
    return weights


def usable_runs(
    observations: pd.DataFrame, response: str, factors: list[str], contrasts: Sequence[str], block: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, tuple[object, ...]]]:
    """
    Select the runs that can be analysed: those with a value of every factor and a positive response.

    factors: The columns that hold the factors.
    contrasts: Numeric factors of which two levels are to be compared; factors whose values are text are always
        contrasts.
    block: The column that holds the blocks, if any.

    Returns: the runs (columns: the factors, with numbers as float64; `_response`; and `_block`, 0 if there are no
        blocks); the rows left out, with their `reason`; the two levels of each contrast.

    Raises ParameterError: a factor does not vary, a contrast does not have exactly two levels, or a numeric factor is
    not positive.
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
    Return the rows with a positive response and a value in all columns `names`, and the others with their `reason`.

    Raises ParameterError: a column is missing, or no row is left.
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
