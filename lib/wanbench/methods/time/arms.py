"""
Compare two arms by their unit of replication: interleaved blocks, runs, or one autocorrelated series each.

Every function gives an interval for the same four numbers: "means" and "medians" (natural logarithm of the ratio b over
a), "difference" and "median_difference" (b minus a).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, log, nan, sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from wanbench.formatting import count, number
from wanbench.methods.time import series

OF_MEANS = ("means", "difference")
OF_MEDIANS = ("medians", "median_difference")
RATIOS = ("means", "medians")
MIN_UNITS = 2
"""A variance between units needs two units."""
MIN_UNITS_FOR_MEDIAN = 4
"""Resamples of fewer units repeat the same few medians, so their percentiles are not an interval."""
MIN_EFFECTIVE = 5.0
"""With fewer effective values the interval depends on the autoregression, which such a short series cannot verify."""
MAX_RESAMPLE = 400
"""Maximum number of values of a group in a resample: more do not change the spread between groups, and cost time."""
SERIES = (
    "stationary bootstrap of the whitened series, filtered back (Politis & Romano 1994; Politis & White 2004; Davison "
    "& Hinkley 1997), expanded percentiles (Hesterberg 2015) with the effective number of values"
)
SERIES_MEDIANS = (
    "plain stationary bootstrap (Politis & Romano 1994), widened by the factor by which its means vary too little, "
    "expanded percentiles (Hesterberg 2015)"
)
RUN_MEANS = "t on run means, with the run as the unit (Welch 1947)"
UNIT_MEDIANS = (
    "bootstrap of {} and of stretches of time within (Davison & Hinkley 1997), expanded percentiles (Hesterberg 2015)"
)
BLOCK_MEANS = "paired: t on the differences between the arms within each block"
PLAIN = "plain stationary bootstrap, percentiles"
ASSUMPTIONS = {
    "series": "Each series is stationary, and depends on its past as an autoregression with short blocks does. "
    "Differences from run to run are not in the interval",
    "runs": "The runs of an arm are independent of each other and of the other arm's, and show every kind of run: a "
    "bad one that comes once in ten times is missing from six runs in half of all cases",
    "blocks": "Differences between blocks act on both arms alike; the blocks are independent of each other, and show "
    "every kind of block: a bad one that comes once in ten times is missing from six blocks in half of all cases",
}


@dataclass(frozen=True)
class Arm:
    """
    One arm: its values in order of time, all and per unit of replication; their mean and median.

    Each unit (a run, a block with both arms, or the whole series) has the same weight in `mean` and `median`, however
    many values it has.
    """

    name: str
    values: np.ndarray = field(repr=False)
    units: tuple[np.ndarray, ...] = field(repr=False)
    mean: float
    median: float
    dependence: series.Series


class Contrast(NamedTuple):
    """A number with its interval; NaN if there is none."""

    number: float
    low: float = nan
    high: float = nan
    standard_error: float = nan


@dataclass(frozen=True)
class ArmIntervals:
    """The four contrasts by name, with the method of their intervals; `plain` is the bootstrap interval of "means"."""

    contrasts: dict[str, Contrast]
    n: int
    basis: str
    method: str
    median_method: str
    plain: tuple[float, float] | None = None
    warnings: tuple[str, ...] = ()


def weighted_median(groups) -> float:
    """
    The median of all values, where each group has the same total weight.

    >>> weighted_median([np.array([1.0, 2.0, 3.0]), np.array([9.0])])
    6.0
    """
    values = np.concatenate(groups)
    weight = np.concatenate([np.full(len(group), 1 / len(group)) for group in groups])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order]) / len(groups)
    # sums of weights miss one half by rounding: both neighbours of an exact half must be found
    low, high = (np.searchsorted(below, 0.5 + step) for step in (-1e-12, 1e-12))
    return float((values[order[low]] + values[order[min(high, len(values) - 1)]]) / 2)


def by_series(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> ArmIntervals:
    """One series per arm, resampled in stretches of time."""
    arms = (a, b)
    units = [arm.dependence.effective_n for arm in arms]
    basis = " and ".join(
        f"{count(len(arm.values), 'value')} worth {number(n, 0)}" for arm, n in zip(arms, units, strict=True)
    )
    n = len(a.values) + len(b.values)
    centre = _four_numbers(*((arm.mean, arm.median) for arm in arms))
    short = [arm.name for arm in arms if len(arm.values) < series.MIN_VALUES]
    if short:
        has = "has" if len(short) == 1 else "have"
        note = f"no interval: {' and '.join(short)} {has} fewer than {series.MIN_VALUES} values"
        return ArmIntervals(_without_intervals(centre), n, basis, SERIES, SERIES, warnings=(note,))
    samples = [series.resampled(arm.dependence, resamples, rng) for arm in arms]
    drawn = _four_numbers(*((sample.means, sample.medians) for sample in samples))
    variance = [arm.values.var() / (unit * arm.mean**2) for arm, unit in zip(arms, units, strict=True)]
    freedom = series.welch_freedom(variance, units)
    contrasts = _bootstrapped((*OF_MEANS, *OF_MEDIANS), centre, drawn, level, freedom, units)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.log(samples[1].plain_means) - np.log(samples[0].plain_means)
    plain = tuple(map(float, np.nanquantile(ratios, [(1 - level) / 2, (1 + level) / 2])))
    return ArmIntervals(contrasts, n, basis, SERIES, SERIES_MEDIANS, plain, _series_cautions(arms))


def _series_cautions(arms) -> tuple[str, ...]:
    cautions = []
    for arm in arms:
        worth = arm.dependence.effective_n
        if worth < MIN_EFFECTIVE:
            cautions.append(
                f"{arm.name}: its {count(len(arm.values), 'value')} are so autocorrelated that they are worth "
                f"{number(worth, 1)} independent ones; below {MIN_EFFECTIVE:g} the interval depends "
                "on the autoregression being right. Measure longer or repeat the run"
            )
    slow = [arm.name for arm in arms if arm.dependence.at_limit]
    if slow or series.is_long([arm.values for arm in arms]):
        cautions.append(
            f"{' and '.join(slow) or 'The series'} swing{'s' * (len(slow) == 1)} slowly, as under regimes or a drift, "
            "so the interval may be far too narrow. Repeat the runs and compare runs"
        )
    return tuple(cautions)


def by_run(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> ArmIntervals:
    """Several runs per arm, the run as the unit."""
    arms, sizes = (a, b), (len(a.units), len(b.units))
    basis = f"{count(sizes[0], 'run')} against {sizes[1]}"
    centre = _four_numbers(*((arm.mean, arm.median) for arm in arms))
    means = [np.array([run.mean() for run in arm.units]) for arm in arms]
    contrasts = _without_intervals(centre) | welch(*means, level)
    notes = ()
    if min(sizes) < MIN_UNITS_FOR_MEDIAN:
        notes = (f"no interval of medians from {basis}; it needs {MIN_UNITS_FOR_MEDIAN} runs in each",)
    else:
        picks = [rng.integers(size, size=(resamples, size)) for size in sizes]
        drawn = _drawn_medians([arm.units for arm in arms], picks, rng)
        relative = [x.var(ddof=1) / len(x) / arm.mean**2 for x, arm in zip(means, arms, strict=True)]
        freedom = series.welch_freedom(relative, sizes)
        contrasts |= _bootstrapped(OF_MEDIANS, centre, drawn, level, freedom, sizes)
    return ArmIntervals(contrasts, sum(sizes), basis, RUN_MEANS, UNIT_MEDIANS.format("runs"), warnings=notes)


def by_block(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> ArmIntervals:
    """Both arms interleaved in each block, compared within it."""
    n, basis = len(a.units), f"{count(len(a.units), 'block')} with both arms"
    means = [np.array([block.mean() for block in arm.units]) for arm in (a, b)]
    centre = _four_numbers(*((arm.mean, arm.median) for arm in (a, b)))
    contrasts, notes = _without_intervals(centre), ()
    # the logarithm of the ratio varies between blocks as the relative deviations do, to first order
    differences = {"means": means[1] / means[1].mean() - means[0] / means[0].mean(), "difference": means[1] - means[0]}
    for name, within in differences.items():
        contrasts[name] = _t_interval(centre[name], float(within.std(ddof=1)) / sqrt(n), n - 1, level)
    if n < MIN_UNITS_FOR_MEDIAN:
        notes = (f"no interval of medians from {basis}; it needs {MIN_UNITS_FOR_MEDIAN}",)
    else:
        picks = rng.integers(n, size=(resamples, n))
        drawn = _drawn_medians((a.units, b.units), (picks, picks), rng)
        contrasts |= _bootstrapped(OF_MEDIANS, centre, drawn, level, n - 1, [n])
    return ArmIntervals(contrasts, n, basis, BLOCK_MEANS, UNIT_MEDIANS.format("blocks"), warnings=notes)


def welch(a: np.ndarray, b: np.ndarray, level: float) -> dict[str, Contrast]:
    """
    Welch's intervals (1947) for independent values: the difference of means, and the logarithm of their ratio by the
    delta method.
    """
    sizes, means = (len(a), len(b)), (float(a.mean()), float(b.mean()))
    centre = {"means": log(means[1] / means[0]), "difference": means[1] - means[0]}
    if min(sizes) < MIN_UNITS:
        return _without_intervals(centre)
    variance = [float(x.var(ddof=1)) / len(x) for x in (a, b)]
    parts = {"means": [v / m**2 for v, m in zip(variance, means, strict=True)], "difference": variance}
    return {
        name: _t_interval(centre[name], sqrt(sum(part)), series.welch_freedom(part, sizes), level)
        for name, part in parts.items()
    }


def _t_interval(centre: float, standard_error: float, freedom: float, level: float) -> Contrast:
    half = stats.t.ppf((1 + level) / 2, freedom) * standard_error
    return Contrast(centre, centre - half, centre + half, standard_error)


def _bootstrapped(names, centre, drawn, level: float, freedom: float, units) -> dict[str, Contrast]:
    """Numbers by name with expanded percentiles of their resamples."""
    return {
        name: Contrast(
            centre[name],
            *series.expanded_percentiles(drawn[name], level, freedom, units),
            float(np.std(drawn[name][np.isfinite(drawn[name])])),
        )
        for name in names
    }


def _four_numbers(a, b) -> dict:
    """The four numbers from (mean, median) of either arm: one value of each, or one per resample."""
    numbers = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for k, (ratio, difference) in enumerate((OF_MEANS, OF_MEDIANS)):
            # widened resamples of values near 0 may pass it: their ratio is then 0 or infinite, not unknown
            numbers[ratio] = np.log(np.maximum(b[k], 0.0)) - np.log(np.maximum(a[k], 0.0))
            numbers[difference] = b[k] - a[k]
    return {name: float(value) if np.ndim(value) == 0 else value for name, value in numbers.items()}


def _without_intervals(centre: dict) -> dict[str, Contrast]:
    return {name: Contrast(value if isfinite(value) else nan) for name, value in centre.items()}


def _drawn_medians(arms, picks, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The four numbers of medians of resamples; `picks` are the groups drawn per resample, one array per arm."""
    if max(len(group) for groups in arms for group in groups) == 1:  # nothing to resample within a group
        medians = [np.median(np.concatenate(groups)[pick], axis=1) for groups, pick in zip(arms, picks, strict=True)]
    else:
        medians = [_medians(groups, pick, rng) for groups, pick in zip(arms, picks, strict=True)]
    return _four_numbers(*((np.ones(len(median)), median) for median in medians))


def _medians(groups, picks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Medians of resamples: the groups of each row of `picks`, each resampled in stretches of time."""
    length = min(MAX_RESAMPLE, int(np.median([len(group) for group in groups])))
    blocks = [series.block_length(group) for group in groups]
    medians = np.empty(len(picks))
    step = max(1, series.CHUNK_CELLS // (length * picks.shape[1]))
    for start in range(0, len(picks), step):
        part = picks[start : start + step]
        drawn = np.empty((*part.shape, length))
        for k, group in enumerate(groups):
            chosen = part == k
            drawn[chosen] = group[series.bootstrap_indices(len(group), length, blocks[k], int(chosen.sum()), rng)]
        medians[start : start + step] = np.median(drawn.reshape(len(part), -1), axis=1)
    return medians
