"""
Two arms: private against internet, before against after. How many times as much, and how much more.

What is measured second by second is autocorrelated, so single values are not the unit. With repeated runs the run
is; with interleaved blocks (A B B A) the block, in which both arms saw the same hour; with one series per arm a
stretch of time, by the stationary bootstrap (`series`). Welch's interval (1947), which takes every value as
independent, stands beside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import exp, isfinite, nan

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent, quantity
from ..result import Estimate, Interval, Result, html, table
from . import arms as two
from .arms import Arm, Found
from .series import series

GAP = 3.0
NAIVE = "Welch's interval over single values"


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """
    Arm b against arm a.

    Attributes
    ----------
    means, medians : Estimate
        Ratio of means, and of medians, b over a: "times".
    difference, median_difference : Estimate
        b less a, in `unit`.
    a, b : Arm
        The arms; with runs `mean` is the mean of run means, with blocks that of block means (blocks with both arms).
    unit_of_replication : str
        "blocks", "runs" or "series".
    left_out : DataFrame
        Rows that were not in use, with the reason.
    """

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
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.means, self.medians, self.difference, self.median_difference)

    def table(self) -> pd.DataFrame:
        """One row per number."""
        return table(self.estimates)

    def wording(self) -> str:
        """The sentence to quote, in which "times" and "per cent more" cannot be mistaken for each other."""
        ratio, low, high = self.means.estimate, self.means.low, self.means.high
        told = f"The mean {self.value} of {self.b.name} is {times(ratio, low, high)} that of {self.a.name}"
        ends = (
            f" ({percent(self.means.level)} interval {self.means.written_interval})" if isfinite(low) else ""
        )
        unsure = ", though it may be the same" if low <= 1 <= high else ""
        means = f"{quantity(self.b.mean, self.unit)} against {quantity(self.a.mean, self.unit)}"
        return f"{told}{ends}, which is {more_or_less(ratio)}{unsure}: {means}."

    DRAWN_BY = "compare_figure.comparison"

    def __str__(self) -> str:
        return f"{self.means} {self.medians.sentence}"

    def _repr_html_(self) -> str:
        return html(self.estimates, f"{self.value}: {self.b.name} against {self.a.name}")


def times(ratio: float, low: float = nan, high: float = nan) -> str:
    """
    A ratio in words, as precise as its interval allows.

    >>> times(2.25), times(2.2537, 2.1, 2.4), times(0.444)
    ('2.25 times', '2.25 times', '0.444 times')
    """
    return quantity(ratio, "times", low, high)


def more_or_less(ratio: float) -> str:
    """
    What a ratio is in per cent: 2.25 times as much is 125 % more, and never "225 % more".

    >>> more_or_less(2.25), more_or_less(0.8), more_or_less(1.0)
    ('125 % more', '20 % less', 'the same')
    """
    apart = round(100 * abs(ratio - 1), 1)
    if not apart:
        return "the same"
    return f"{number(apart, 0 if apart >= 10 else 1)} % {'more' if ratio > 1 else 'less'}"


def compare_series(
    a, b, *, names: tuple[str, str] = ("a", "b"), value: str = "value", **settings
) -> Comparison:
    """
    Compare two arrays, one series per arm in order of time; settings as in `compare_arms`.

    >>> rng = np.random.default_rng(0)
    >>> found = compare_series(rng.normal(20, 2, 300), rng.normal(45, 5, 300), names=("private", "internet"))
    >>> bool(found.means.low < 2.25 < found.means.high), found.unit_of_replication
    (True, 'series')
    """
    arrays = [np.asarray(each, dtype=float) for each in (a, b)]
    for name, each in zip(names, arrays, strict=True):
        if each.ndim != 1:
            raise ParameterError(f"{name} has {each.ndim} dimensions; a series has one")
    frame = pd.DataFrame({"arm": np.repeat(list(names), [len(each) for each in arrays])})
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
    Ratio of means and of medians, b over a, and the differences, with intervals.

    In simulated first-order autoregressive series of 50 to 1,000 values with correlations of 0 to 0.97, skewed ones and
    ones with white noise on top, the interval of the ratio of means covers in 93.4 to 96.3 of 100 at the level 95 %,
    where Welch's falls to 17.5; that of medians in 93.3 to 97.1 (`make validity`, data/validity/compare.csv). Slow
    regimes, a drift and long memory leave it far too narrow; a caution then says to compare runs (slow.csv there).

    Parameters
    ----------
    observations : DataFrame
        One row per observation.
    value : str
        The column compared. Rows without a finite number are left out and counted.
    arm, arms : str, pair of str
        The column of the arms, and which is a and which is b; by default the two there are, in order of name.
    run, time, block : str
        Columns, where there are any: the run, the time within it (else rows are taken as in order), and the block in
        which both arms were measured by turns. With blocks the comparison is paired; with two or more runs in each
        arm the run is the unit; else a stretch of time.
    unit : str
        Unit of the value, such as "ms" or "bit/s".
    resamples, seed
        Of the bootstrap.

    Raises
    ------
    ParameterError
        For missing columns, other than two arms, an arm without values, or means that are not positive.
    """
    level = check_level(level)
    rows, left_out, names = _checked(observations, value, arm, arms, [run, time, block])
    sides = [_arm(rows[rows[arm] == name], str(name), value, run, time, block) for name in names]
    notes = _notes(left_out, rows, value, time, arm, run)
    kind, more = _kind(sides, run, block)
    sides = _by_unit(sides, kind)
    for side in sides:
        if not (side.mean > 0 and side.median > 0):
            raise ParameterError(
                f"{side.name}: mean {side.mean:g} and median {side.median:g} of {value}; a ratio takes positive ones"
            )
    methods = {"blocks": two.by_block, "runs": two.by_run, "series": two.by_series}
    found = methods[kind](*sides, level, resamples, np.random.default_rng(seed))
    notes = (*notes, *more, *found.warnings)
    again = partial(
        compare_arms, observations, value, arm=arm, arms=arms, run=run, time=time, block=block, unit=unit,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    contrasts = _contrasts(sides, found, value, unit, kind, notes, level, again)
    return Comparison(*contrasts, *sides, value, unit, kind, left_out)


def _checked(observations, value, arm, arms, others) -> tuple[pd.DataFrame, pd.DataFrame, tuple]:
    """The rows in use, those that are not with their reason, and the names of both arms."""
    missing = [
        name for name in (value, arm, *others) if name is not None and name not in observations.columns
    ]
    if missing:
        listed = ", ".join(map(str, observations.columns))
        raise ParameterError(f"the observations lack {', '.join(map(str, missing))}; they have {listed}")
    there = sorted(observations[arm].dropna().unique().tolist(), key=str)
    names = tuple(there) if arms is None else tuple(arms)
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(there):
        asked = "" if arms is None else f"; asked for were {', '.join(map(str, names))}"
        raise ParameterError(
            f"a comparison takes two arms; {arm} has {', '.join(map(str, there)) or 'none'}{asked}"
        )
    numbers = pd.to_numeric(observations[value], errors="coerce").astype("float64")
    reason = pd.Series(None, index=observations.index, dtype=object)
    for name in others:
        if name is not None:
            reason[observations[name].isna()] = f"without {name}"
    reason[~np.isfinite(numbers)] = f"without {value}"
    reason[~observations[arm].isin(names)] = "of another arm"
    left_out = observations.assign(reason=reason)[reason.notna()].reset_index(drop=True)
    rows = observations.assign(**{value: numbers})[reason.isna()].reset_index(drop=True)
    for name in names:
        if not (rows[arm] == name).any():
            raise ParameterError(f"arm {name} has no row with {value}")
    return rows, left_out, names


def _arm(rows: pd.DataFrame, name: str, value: str, run, time, block) -> Arm:
    order = [] if time is None else [each for each in (run, time) if each is not None]
    rows = rows.sort_values(order, kind="stable") if order else rows
    values = rows[value].to_numpy()
    runs = tuple(part[value].to_numpy() for _, part in rows.groupby(run)) if run else (values,)
    blocks = {key: part[value].to_numpy() for key, part in rows.groupby(block)} if block else {}
    mean = float(np.mean([each.mean() for each in runs]))
    return Arm(name, values, runs, blocks, mean, two.middle(runs), series(values))


def _by_unit(sides: list[Arm], kind: str) -> list[Arm]:
    """The arms with the mean and median that the interval is of: over blocks with both arms, runs, or values."""
    if kind == "runs":
        return sides
    shared = set(sides[0].blocks) & set(sides[1].blocks)
    found = []
    for side in sides:
        blocks = {key: each for key, each in side.blocks.items() if key in shared}
        groups = tuple(blocks.values()) if kind == "blocks" else (side.values,)
        mean = float(np.mean([each.mean() for each in groups]))
        found.append(replace(side, blocks=blocks, mean=mean, median=two.middle(groups)))
    return found


def _notes(left_out: pd.DataFrame, rows: pd.DataFrame, value: str, time, arm: str, run) -> list[str]:
    notes = []
    if len(left_out):
        reasons = ", ".join(f"{n:,} {why}" for why, n in sorted(left_out.reason.value_counts().items()))
        notes.append(f"{count(len(left_out), 'row')} left out ({reasons})")
    if time is not None:
        keys = [arm, run] if run else [arm]
        for key, part in rows.groupby(keys):
            steps = part[time].sort_values().diff().dropna()
            if len(steps) > 1 and steps.max() > GAP * steps.median():
                where = " ".join(map(str, key))
                notes.append(
                    f"{where} has gaps: a step of {number(steps.max() / steps.median(), 0)} times the usual"
                )
                break
    return notes


def _kind(sides: list[Arm], run, block) -> tuple[str, list[str]]:
    """The unit of replication, and what must be said of it."""
    if block:
        shared = len(set(sides[0].blocks) & set(sides[1].blocks))
        alone = len(set(sides[0].blocks) ^ set(sides[1].blocks))
        if shared >= two.FEWEST_UNITS:
            return "blocks", [f"{count(alone, 'block')} with one arm only not in use"] if alone else []
        raise ParameterError(f"a paired comparison takes 2 blocks with both arms; {block} has {shared}")
    if min(len(side.runs) for side in sides) >= two.FEWEST_UNITS:
        return "runs", []
    if run:
        return "series", ["an arm has a single run: what differs from run to run is not in the interval"]
    return "series", []


def _contrasts(
    sides, found: Found, value: str, unit: str, kind: str, notes, level: float, again
) -> list[Estimate]:
    a, b = sides
    said = {
        "means": ("ratio of means", f"The mean {value} of {b.name} is {{}} that of {a.name}"),
        "medians": ("ratio of medians", f"The median {value} of {b.name} is {{}} that of {a.name}"),
        "difference": ("difference of means", f"The mean {value} of {b.name} less that of {a.name} is {{}}"),
        "median_difference": (
            "difference of medians",
            f"The median {value} of {b.name} less that of {a.name} is {{}}",
        ),
    }
    naive = two.welch(a.values, b.values, level)
    contrasts = []
    for name, (short, claim) in said.items():
        ratio = name in ("means", "medians")
        change = exp if ratio else float
        ends = [change(each) if isfinite(each) else nan for each in found.intervals[name]]
        beside = [change(each) if isfinite(each) else nan for each in naive.get(name, (nan, nan))]
        plain = found.plain if name == "means" and found.plain else None
        contrasts.append(
            Estimate(
                quantity=f"{short}, {value}",
                claim=claim,
                estimate=ends[0],
                low=ends[1],
                high=ends[2],
                unit="times" if ratio else unit,
                n=found.n,
                basis=found.basis,
                method=found.median_method if "median" in name else found.method,
                assumption=two.ASSUMPTIONS[kind],
                level=level,
                naive=Interval(NAIVE, *beside),
                others=(Interval(two.PLAIN, *map(exp, plain)),) if plain else (),
                warnings=tuple(notes),
                # that of the logarithm of a ratio, by the delta method
                standard_error=found.errors.get(name, nan) * (ends[0] if ratio else 1.0),
                ends=partial(_ends_at, again, name),
            )
        )
    return contrasts


def _ends_at(again: Callable[..., Comparison], name: str, level: float) -> tuple[float, float]:
    return getattr(again(level=level), name).conf_int()
