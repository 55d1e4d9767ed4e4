"""
Two arms by their unit of replication: interleaved blocks, runs, or one autocorrelated series each.

Every function gives the same four numbers, "means" and "medians" (natural logarithm of the ratio b over a),
"difference" and "median_difference" (b less a).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, log, nan, sqrt

import numpy as np
from scipy import stats

from ...formatting import count, number
from . import memory, series

NUMBERS = ("means", "medians", "difference", "median_difference")
FEWEST_UNITS, FEWEST_FOR_MEDIAN = 2, 4
FEWEST_EFFECTIVE = 5.0
LONGEST_RESAMPLE = 400
SERIES = (
    "stationary bootstrap of the whitened series, filtered back (Politis & Romano 1994; Politis & White 2004; Davison "
    "& Hinkley 1997), expanded percentiles (Hesterberg 2015) with the effective number of values"
)
SERIES_MEDIANS = (
    "plain stationary bootstrap (Politis & Romano 1994), spread out by as much as its means vary too little, expanded "
    "percentiles (Hesterberg 2015)"
)
RUN_MEANS = "t on run means, with the run as the unit (Welch 1947)"
RUN_MEDIANS = (
    "bootstrap of {} and of stretches of time within (Davison & Hinkley 1997), expanded percentiles "
    "(Hesterberg 2015)"
)
BLOCK_MEANS = "paired: t on what the arms differ by within each block"
PLAIN = "plain stationary bootstrap, percentiles"
ASSUMPTIONS = {
    "series": "Each series is stationary, and depends on its past as an autoregression with short blocks does. What "
    "differs from one run to the next is not in the interval",
    "runs": "The runs of an arm are independent of each other and of the other arm's, and stand for further ones",
    "blocks": "What differs between blocks acts on both arms alike; the blocks are independent of each other",
}


@dataclass(frozen=True)
class Arm:
    """
    One arm: its values in order of time, also by run and by block; their mean and median.

    With runs or blocks each of them weighs the same in `mean` and `median`, however many values it has.
    """

    name: str
    values: np.ndarray = field(repr=False)
    runs: tuple[np.ndarray, ...] = field(repr=False)
    blocks: dict[object, np.ndarray] = field(repr=False)
    mean: float
    median: float
    dependence: series.Series


@dataclass(frozen=True)
class Found:
    """The four numbers with their intervals and standard errors, and how they were had."""

    intervals: dict[str, tuple[float, float, float]]
    errors: dict[str, float]
    n: int
    basis: str
    method: str
    median_method: str
    plain: tuple[float, float] | None = None
    warnings: tuple[str, ...] = field(default=())


def middle(groups) -> float:
    """
    The median of all values, each group having the same weight in all.

    >>> middle([np.array([1.0, 2.0, 3.0]), np.array([9.0])])
    6.0
    """
    values = np.concatenate(groups)
    weight = np.concatenate([np.full(len(group), 1 / len(group)) for group in groups])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order]) / len(groups)
    low, high = (np.searchsorted(below, 0.5 + step) for step in (-1e-12, 1e-12))
    return float((values[order[low]] + values[order[min(high, len(values) - 1)]]) / 2)


def by_series(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> Found:
    """One series per arm, resampled in stretches of time."""
    arms = (a, b)
    units = [arm.dependence.effective_n for arm in arms]
    worth = (
        f"{count(len(arm.values), 'value')} worth {number(arm.dependence.effective_n, 0)}" for arm in arms
    )
    basis = " and ".join(worth)
    n = len(a.values) + len(b.values)
    centre = _numbers(*((arm.mean, arm.median) for arm in arms))
    short = [arm.name for arm in arms if len(arm.values) < series.FEWEST]
    if short:
        has = "has" if len(short) == 1 else "have"
        note = f"no interval: {' and '.join(short)} {has} fewer than {series.FEWEST} values"
        return Found(_without(centre), {}, n, basis, SERIES, SERIES, warnings=(note,))
    samples = [series.resampled(arm.dependence, resamples, rng) for arm in arms]
    drawn = _numbers(*((each.means, each.medians) for each in samples))
    spread = [arm.values.var() / (unit * arm.mean**2) for arm, unit in zip(arms, units, strict=True)]
    freedom = series.welch_freedom(spread, units)
    ends = {name: (centre[name], *series.expanded(drawn[name], level, freedom, units)) for name in NUMBERS}
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.log(samples[1].plain_means) - np.log(samples[0].plain_means)
    plain = np.nanquantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    errors = {name: float(np.nanstd(drawn[name])) for name in NUMBERS}
    return Found(ends, errors, n, basis, SERIES, SERIES_MEDIANS, tuple(map(float, plain)), _weak(arms))


def _weak(arms) -> tuple[str, ...]:
    said = []
    for arm in arms:
        worth = arm.dependence.effective_n
        if worth < FEWEST_EFFECTIVE:
            said.append(
                f"{arm.name}: its {count(len(arm.values), 'value')} are so autocorrelated that they are worth "
                f"{number(worth, 1)} independent ones; below {FEWEST_EFFECTIVE:g} the interval rests "
                "on the autoregression being right. Measure longer or repeat the run"
            )
    slow = [arm.name for arm in arms if arm.dependence.at_limit]
    if slow or memory.is_long([arm.values for arm in arms]):
        said.append(
            f"{' and '.join(slow) or 'The series'} swing{'s' * (len(slow) == 1)} slowly, as under regimes or a drift, "
            "so the interval may be far too narrow. Repeat the runs and compare runs"
        )
    return tuple(said)


def by_run(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> Found:
    """Several runs per arm, the run as the unit."""
    arms, sizes = (a, b), (len(a.runs), len(b.runs))
    basis, n = f"{count(sizes[0], 'run')} against {sizes[1]}", sum(sizes)
    centre = _numbers(*((arm.mean, arm.median) for arm in arms))
    means = [np.array([run.mean() for run in arm.runs]) for arm in arms]
    variance = [each.var(ddof=1) / len(each) for each in means]
    ends, errors = _without(centre), {}
    for name, scaled in (
        ("means", [v / arm.mean**2 for v, arm in zip(variance, arms, strict=True)]),
        ("difference", variance),
    ):
        errors[name] = sqrt(sum(scaled))
        half = stats.t.ppf((1 + level) / 2, series.welch_freedom(scaled, sizes)) * errors[name]
        ends[name] = (centre[name], centre[name] - half, centre[name] + half)
    notes = []
    if min(sizes) < FEWEST_FOR_MEDIAN:
        notes.append(f"no interval of medians from {basis}; it takes {FEWEST_FOR_MEDIAN} runs in each")
    else:
        picks = [rng.integers(size, size=(resamples, size)) for size in sizes]
        medians = (_medians(arm.runs, pick, rng) for arm, pick in zip(arms, picks, strict=True))
        drawn = _numbers(*((np.ones(resamples), each) for each in medians))
        freedom = series.welch_freedom(
            [v / arm.mean**2 for v, arm in zip(variance, arms, strict=True)], sizes
        )
        for name in ("medians", "median_difference"):
            ends[name] = (centre[name], *series.expanded(drawn[name], level, freedom, sizes))
            errors[name] = float(np.nanstd(drawn[name]))
    return Found(ends, errors, n, basis, RUN_MEANS, RUN_MEDIANS.format("runs"), warnings=tuple(notes))


def by_block(a: Arm, b: Arm, level: float, resamples: int, rng: np.random.Generator) -> Found:
    """Both arms by turns in each block, compared within it."""
    both = sorted(set(a.blocks) & set(b.blocks), key=str)
    values = [[arm.blocks[name] for name in both] for arm in (a, b)]
    basis, n = f"{count(len(both), 'block')} with both arms", len(both)
    means = [np.array([each.mean() for each in arm]) for arm in values]
    centre = _numbers(*((mean.mean(), middle(arm)) for mean, arm in zip(means, values, strict=True)))
    ends, errors, notes = _without(centre), {}, []
    apart = {
        "means": means[1] / means[1].mean() - means[0] / means[0].mean(),
        "difference": means[1] - means[0],
    }
    for name, each in apart.items():
        errors[name] = float(each.std(ddof=1)) / sqrt(n)
        half = stats.t.ppf((1 + level) / 2, n - 1) * errors[name]
        ends[name] = (centre[name], centre[name] - half, centre[name] + half)
    if n < FEWEST_FOR_MEDIAN:
        notes.append(f"no interval of medians from {basis}; it takes {FEWEST_FOR_MEDIAN}")
    else:
        picks = rng.integers(n, size=(resamples, n))
        drawn = _numbers(*((np.ones(resamples), _medians(arm, picks, rng)) for arm in values))
        for name in ("medians", "median_difference"):
            ends[name] = (centre[name], *series.expanded(drawn[name], level, n - 1, [n]))
            errors[name] = float(np.nanstd(drawn[name]))
    return Found(ends, errors, n, basis, BLOCK_MEANS, RUN_MEDIANS.format("blocks"), warnings=tuple(notes))


def welch(a: np.ndarray, b: np.ndarray, level: float) -> dict[str, tuple[float, float]]:
    """
    Welch's interval (1947) of the difference of means, values taken as independent, and by the delta method of the
    logarithm of their ratio.
    """
    found = {}
    sizes, means = (len(a), len(b)), (float(a.mean()), float(b.mean()))
    if min(sizes) < FEWEST_UNITS:
        return dict.fromkeys(("means", "difference"), (nan, nan))
    variance = [float(each.var(ddof=1)) / len(each) for each in (a, b)]
    centre = {"difference": means[1] - means[0], "means": log(means[1] / means[0])}
    scaled = {"difference": variance, "means": [v / m**2 for v, m in zip(variance, means, strict=True)]}
    for name in centre:
        half = stats.t.ppf((1 + level) / 2, series.welch_freedom(scaled[name], sizes)) * sqrt(
            sum(scaled[name])
        )
        found[name] = (centre[name] - half, centre[name] + half)
    return found


def _numbers(a, b) -> dict:
    """The four numbers of (mean, median) of either arm, one of each or many."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = [np.log(b[k]) - np.log(a[k]) for k in (0, 1)]
    found = dict(zip(NUMBERS, (*logs, b[0] - a[0], b[1] - a[1]), strict=True))
    return {name: float(value) if np.ndim(value) == 0 else value for name, value in found.items()}


def _without(centre: dict) -> dict[str, tuple[float, float, float]]:
    return {name: (value if isfinite(value) else nan, nan, nan) for name, value in centre.items()}


def _medians(groups, picks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Medians of resamples: the groups of each row of `picks`, each resampled in stretches of time."""
    length = min(LONGEST_RESAMPLE, int(np.median([len(group) for group in groups])))
    blocks = [series.block_length(group) for group in groups]
    found = np.empty(len(picks))
    step = max(1, series.CHUNK_CELLS // (length * picks.shape[1]))
    for start in range(0, len(picks), step):
        part = picks[start : start + step]
        drawn = np.empty((*part.shape, length))
        for k, group in enumerate(groups):
            chosen = part == k
            drawn[chosen] = group[series.indices(len(group), length, blocks[k], int(chosen.sum()), rng)]
        found[start : start + step] = np.median(drawn.reshape(len(part), -1), axis=1)
    return found
