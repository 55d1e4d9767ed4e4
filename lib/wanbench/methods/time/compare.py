"""
Two arms compared, such as private against internet: ratio and difference of means and medians.

Values measured second by second are autocorrelated, so they are not independent replicates. The unit is the run if runs
are repeated; the block if arms are interleaved (A B B A), as both share the same hour; and a stretch of time for one
series per arm, by the stationary bootstrap (`series`). Welch's interval (1947) of independent values is the naive one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan, nan

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_level, check_resamples, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, Interval, Result
from wanbench.methods.sizes import check_sizes, numbers

from . import arms as methods
from .arms import Arm, Contrast
from .series import fit_series

GAP = 3.0
"""A step of time this many times the median step is a gap; jitter of a sampling tool stays below it."""
NAIVE = "Welch's interval over single values"
ONE_RUN = "an arm has a single run: runs may differ by more than this interval, and only further runs can show it"


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """
    Arm b against arm a.

    Attributes
    ----------
    means, medians : Estimate
        Ratio of means, and of medians, b over a: "times".
    difference, median_difference : Estimate
        b minus a, in `unit`.
    a, b : Arm
        The arms. `mean` is the mean of run means, or of block means (blocks with both arms), if there are runs or
        blocks.
    unit_of_replication : str
        "blocks", "runs" or "series".
    left_out : DataFrame
        Rows that were not in use, with the reason.
    """

    TITLE = "Two arms compared"

    means: Estimate
    medians: Estimate
    difference: Estimate
    median_difference: Estimate
    a: Arm
    b: Arm
    value: str
    unit: str
    unit_of_replication: str
    left_out: pd.DataFrame

    @property
    def sentence(self) -> str:
        """The ratio of means, worded so that "times" and "per cent more" cannot be confused."""
        ratio = self.means
        ends = ratio.formatted_interval
        inside = f"{ratio.formatted_level} interval {ends}; {ratio.basis}" if ends else ratio.basis
        unsure = ", though it may be the same" if ratio.low <= 1 <= ratio.high else ""
        return (
            f"The mean {self.value} of {self.b.name} is {ratio.formatted} that of {self.a.name} ({inside}), which is "
            f"{more_or_less(ratio.estimate)}{unsure}: {quantity(self.b.mean, self.unit)} against "
            f"{quantity(self.a.mean, self.unit)}."
        )


def times(ratio: float, low: float = nan, high: float = nan) -> str:
    """
    A ratio rounded as its interval allows.

    >>> times(2.25), times(2.2537, 2.1, 2.4), times(0.444)
    ('2.25 times', '2.25 times', '0.444 times')
    """
    return quantity(ratio, "times", low, high)


def more_or_less(ratio: float) -> str:
    """
    A ratio in per cent: 2.25 times as much is 125 % more, not "225 % more".

    >>> more_or_less(2.25), more_or_less(0.8), more_or_less(1.0)
    ('125 % more', '20 % less', 'the same')
    """
    change = round(100 * abs(ratio - 1), 1)
    if not change:
        return "the same"
    return f"{number(change, 0 if change >= 10 else 1)} % {'more' if ratio > 1 else 'less'}"


def compare_series(a, b, *, names: tuple[str, str] = ("a", "b"), value: str = "value", **settings) -> Comparison:
    """
    Compare two arrays, one series per arm in order of time; settings as in `compare_arms`.

    >>> rng = np.random.default_rng(0)
    >>> result = compare_series(rng.normal(20, 2, 300), rng.normal(45, 5, 300), names=("private", "internet"))
    >>> bool(result.means.low < 2.25 < result.means.high), result.unit_of_replication
    (True, 'series')
    """
    arrays = [numbers(name, values) for name, values in zip(names, (a, b), strict=True)]
    frame = pd.DataFrame({"arm": np.repeat(list(names), [len(values) for values in arrays])})
    return compare_arms(frame.assign(**{value: np.concatenate(arrays)}), value, arms=names, **settings)


def compare_arms(
    observations: pd.DataFrame,
    value: str,
    *,
    arm: str = "arm",
    arms: tuple[str, str] | None = None,
    run: str | None = None,
    time: str | None = None,
    block: str | None = None,
    unit: str = "",
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Comparison:
    """
    Ratios and differences of means and medians, with intervals.

    Coverage was counted on simulated first-order autoregressive series of 50 to 1,000 values with correlations of 0 to
    0.97, some skewed, some with white noise added. The 95 % interval of the ratio of means covers in 93.4 to 96.3 of
    100, that of medians in 93.3 to 97.1; Welch's falls to 17.5 (`make validity`, data/validity/compare.csv). Under slow
    regimes, drift or long memory the interval is far too narrow; a caution then advises to compare runs (slow.csv),
    but often not under weak long memory. If levels differ from run to run, one series an arm cannot show
    it, so a caution always says so.

    Parameters
    ----------
    observations : DataFrame
        One row per observation.
    value : str
        The column compared. Rows without a finite value are left out and counted.
    arm, arms : str, pair of str
        The column of the arms, and its values a and b; by default both values, in order of name.
    run, time, block : str, optional
        Columns: the run, the time within it (by default rows are in order of time), and the block in which both arms
        were interleaved. With blocks the comparison is paired; with two or more runs in each arm the run is the unit;
        otherwise a stretch of time.
    unit : str
        Unit of the value, such as "ms" or "bit/s".
    resamples, seed
        Number and seed of resamples of the bootstrap.

    Raises
    ------
    ParameterError
        If a column is missing, there are not two arms, an arm has no values, or a mean or median is not positive.
    """
    level = check_level(level)
    check_resamples(resamples, seed)
    rows, left_out, names = _checked(observations, value, arm, arms, [run, time, block])
    sides = [_ordered(rows[rows[arm] == name], run, time) for name in names]
    kind, units, cautions = _units(sides, value, run, block)
    a, b = (
        _arm(str(name), side[value].to_numpy(), groups) for name, side, groups in zip(names, sides, units, strict=True)
    )
    for one in (a, b):
        if not (one.mean > 0 and one.median > 0):
            raise ParameterError(
                f"{value} of {one.name} has mean {one.mean:g} and median {one.median:g}; allowed: both above 0."
            )
    by_unit = {"blocks": methods.by_block, "runs": methods.by_run, "series": methods.by_series}[kind]
    intervals = by_unit(a, b, level, resamples, np.random.default_rng(seed))
    warnings = (*_row_cautions(left_out, rows, time, arm, run), *cautions, *intervals.warnings)
    again = partial(
        compare_arms, observations, value, arm=arm, arms=arms, run=run, time=time, block=block, unit=unit,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    naive = methods.welch(a.values, b.values, level)
    shared = {"n": intervals.n, "basis": intervals.basis, "level": level, "warnings": warnings}
    shared["assumption"] = methods.ASSUMPTIONS[kind]

    def estimate(name: str, quantity_name: str, claim: str) -> Estimate:
        ratio, plain = name in methods.RATIOS, intervals.plain if name == "means" else None
        # ratios are estimated as logarithms
        change = _ratio if ratio else float
        contrast, independent = intervals.contrasts[name], naive.get(name, Contrast(nan))
        number, low, high = (nan if isnan(x) else change(x) for x in contrast[:3])
        return Estimate(
            quantity=f"{quantity_name}, {value}",
            claim=claim,
            estimate=number,
            low=low,
            high=high,
            unit="times" if ratio else unit,
            method=intervals.method if name in methods.OF_MEANS else intervals.median_method,
            naive=Interval(NAIVE, *(change(x) if isfinite(x) else nan for x in independent[1:3])),
            others=(Interval(methods.PLAIN, *map(_ratio, plain)),) if plain else (),
            # the error of a ratio is that of its logarithm times the ratio (delta method)
            standard_error=contrast.standard_error * (number if ratio else 1.0),
            ends=partial(_ends_at, again, name),
            **shared,
        )

    mean, median = (f"The {average} {value} of {b.name}" for average in ("mean", "median"))
    return Comparison(
        estimate("means", "ratio of means", f"{mean} is {{}} that of {a.name}"),
        estimate("medians", "ratio of medians", f"{median} is {{}} that of {a.name}"),
        estimate("difference", "difference of means", f"{mean} minus that of {a.name} is {{}}"),
        estimate("median_difference", "difference of medians", f"{median} minus that of {a.name} is {{}}"),
        a, b, value, unit, kind, left_out,
    )  # fmt: skip


def _checked(observations, value, arm, arms, others) -> tuple[pd.DataFrame, pd.DataFrame, tuple]:
    """The rows in use, the rows left out with their reason, and the names of both arms."""
    others = [name for name in others if name is not None]
    check_columns("observations", observations, [value, arm, *others])
    present = sorted(observations[arm].dropna().unique().tolist(), key=str)
    names = tuple(present) if arms is None else tuple(arms)
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(present):
        values = ", ".join(map(str, present)) or "none"
        raise refusal("arms", arms, f"two different values of column {arm}, which has {values}")
    found = pd.to_numeric(observations[value], errors="coerce").astype("float64")
    check_sizes(value, found)
    reason = np.full(len(observations), None, dtype=object)
    for name in others:
        reason[observations[name].isna().to_numpy()] = f"without {name}"
    reason[~np.isfinite(found.to_numpy())] = f"without {value}"
    reason[~observations[arm].isin(names).to_numpy()] = "of another arm"
    out = reason != None  # noqa: E711  (of each element)
    left_out = observations[out].reset_index(drop=True)
    left_out = left_out.assign(reason=pd.Series(reason[out], dtype=object))
    used = observations[list(dict.fromkeys([value, arm, *others]))]
    rows = used.assign(**{value: found})[~out].reset_index(drop=True)
    for name in names:
        if not (rows[arm] == name).any():
            raise ParameterError(f"arm {name} has no row with {value}.")
    return rows, left_out, names


def _ordered(rows: pd.DataFrame, run, time) -> pd.DataFrame:
    """The rows of an arm in order of time, run by run."""
    if time is None:
        return rows
    return rows.sort_values([time] if run is None else [run, time], kind="stable")


def _units(sides: list[pd.DataFrame], value: str, run, block) -> tuple[str, list[dict], list[str]]:
    """The kind of the unit of replication, the values of each unit by arm, and cautions."""

    def groups(column) -> list[dict]:
        return [{key: part.to_numpy() for key, part in side.groupby(column)[value]} for side in sides]

    if block:
        blocks = groups(block)
        shared = sorted(set(blocks[0]) & set(blocks[1]), key=str)
        alone = len(set(blocks[0]) ^ set(blocks[1]))
        if len(shared) < methods.MIN_UNITS:
            present = f"{count(len(shared), 'block')} with both arms"
            raise ParameterError(f"{block} has {present}; allowed: {methods.MIN_UNITS} or more.")
        cautions = [f"{count(alone, 'block')} with one arm only not in use"] if alone else []
        return "blocks", [{key: own[key] for key in shared} for own in blocks], cautions
    runs = groups(run) if run else []
    if run and min(map(len, runs)) >= methods.MIN_UNITS:
        return "runs", runs, []
    return "series", [{"": side[value].to_numpy()} for side in sides], [ONE_RUN]


def _arm(name: str, values: np.ndarray, units: dict[object, np.ndarray]) -> Arm:
    groups = tuple(units.values())
    mean = float(np.mean([group.mean() for group in groups]))
    return Arm(name, values, groups, mean, methods.weighted_median(groups), fit_series(values))


def _row_cautions(left_out: pd.DataFrame, rows: pd.DataFrame, time, arm: str, run) -> list[str]:
    notes = []
    if len(left_out):
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(left_out.reason.value_counts().items()))
        notes.append(f"{count(len(left_out), 'row')} left out ({reasons})")
    if time is not None:
        for key, part in rows.groupby([arm, run] if run else [arm])[time]:
            steps = part.sort_values().diff().dropna()
            if len(steps) > 1 and steps.max() > GAP * steps.median():
                longest = number(steps.max() / steps.median(), 0)
                notes.append(f"{' '.join(map(str, key))} has gaps: a step of {longest} times the usual")
                break
    return notes


def _ratio(log: float) -> float:
    """A ratio from its logarithm; infinite beyond the largest float, as the end of an interval of few units may be."""
    with np.errstate(over="ignore"):
        return float(np.exp(log))


def _ends_at(again: Callable[..., Comparison], name: str, level: float) -> tuple[float, float]:
    return getattr(again(level=level), name).conf_int()
