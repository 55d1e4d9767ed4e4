"""
Fit throughput against distance when near pairs reach a ceiling, such as the rate of a NIC or of a policer.

The regression treats values at a ceiling as right-censored: the true value is at least the limit (Tobin 1958). In
Olsen's (1978) parameters the likelihood is concave, so Newton's method with halved steps finds its only maximum, here
for many weightings of the rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, nan

import numpy as np
import pandas as pd
from scipy.special import log_ndtr

from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.distance.straight_lines import THOUSAND_KM, half_distance
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import ASSUMPTION, DYADIC, REFERENCES, Part
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, directed, require_regions
from wanbench.methods.regions.places import Units, units
from wanbench.methods.regions.regression import least_squares
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile

MAX_STEPS = 60  # Newton's method converges in far fewer steps if there is a maximum
MAX_HALVINGS = 40  # A step that is 2^40 times shorter changes only rounding
# The search ends when the predicted rise of the log-likelihood is smaller than this; a fit with a smaller spread is
# perfect
SMALL = 1e-10
LOG_ROOT_2_PI = 0.5 * np.log(2 * np.pi)
WITHIN = 0.05  # Width of the band below a ceiling in which values count as at the ceiling
MIN_CROWD = 5  # Fewer values than this may lie close together by chance
MIN_REGIONS = 3  # A cloud's ceiling shows in several of its regions; repeats of one region agree for other reasons
# Without a ceiling, values become sparse towards the largest one, so there are fewer of them than in the band below
CROWD_TO_BAND = 2.0
CROWD_TO_ABOVE = 3.0  # Bursts above a ceiling are rare compared with the values at it
# Share of the values that may lie above a ceiling (at least one value may): bursts, and hosts of another kind
MAX_SHARE_ABOVE = 0.02
METHOD = (
    "right-censored regression of log10 throughput on distance over ordered pairs, by maximum likelihood (Tobin "
    f"1958; Olsen 1978); interval from the {DYADIC} ({REFERENCES}), both directions of a pair left out together"
)
ORDINARY = f"least squares on the unchanged values; interval from the {DYADIC}"
NORMAL = (
    "Without the ceiling, log throughput would scatter about one straight line, normally "
    "and with equal variance, also where the ceiling hides it. " + ASSUMPTION
)
# If a larger share of the rows is at the ceiling, the line depends more on the assumption than on values
MOSTLY_CENSORED = 0.5


def tobit(design, y, censored, weights=None, start=None) -> tuple[np.ndarray, np.ndarray]:
    """
    Fit a right-censored regression for each of several weightings of the rows.

    design: Array (rows, coefficients).
    y: The value of each row; of a censored row, its limit.
    censored: Whether the row's true value is at least `y`.
    weights: Array (weightings, rows): how often each row counts. Default: one weighting, every row once.
    start: Coefficients and standard deviation to start from.

    Returns: coefficients (weightings, coefficients) and standard deviations (weightings,), NaN for a weighting whose
        likelihood has no maximum: fewer uncensored rows than coefficients, or a perfect fit.

    Raises ParameterError: too few rows are uncensored, or the columns of the design are linearly dependent.
    """
    design, y, censored = np.asarray(design, float), np.asarray(y, float), np.asarray(censored, bool)
    weights = np.ones((1, len(y))) if weights is None else np.asarray(weights, float)
    n_coefficients = design.shape[1]
    if (~censored).sum() <= n_coefficients:
        raise ParameterError(f"{(~censored).sum()} rows below their limit are too few to fit a line")
    if start is None:
        begun, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
        if rank < n_coefficients:
            raise ParameterError("the columns of the design are linearly dependent")
        spread = float(np.std(y - design @ begun)) or SMALL
    else:
        begun, spread = start
    rows = np.column_stack([design, -y])
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    theta = np.tile(np.append(begun / spread, 1 / spread), (len(weights), 1))
    free = weights @ (~censored)
    value = _likelihood(theta, rows, censored, weights, free)
    active = np.flatnonzero(free > n_coefficients)
    failed = free <= n_coefficients
    for _ in range(MAX_STEPS):
        if not len(active):
            break
        step, rising = _newton(theta[active], rows, squares, censored, weights[active], free[active])
        done = rising < SMALL
        active, step = active[~done], step[~done]
        moved = np.zeros(len(active), dtype=bool)
        length = np.ones(len(active))
        # The likelihood is concave, so a short enough step raises it, unless there is no maximum.
        for _ in range(MAX_HALVINGS):
            left = np.flatnonzero(~moved)
            if not len(left):
                break
            at = active[left]
            tried = theta[at] + length[left, None] * step[left]
            now = _likelihood(tried, rows, censored, weights[at], free[at])
            up = now >= value[at]
            theta[at[up]], value[at[up]] = tried[up], now[up]
            moved[left[up]] = True
            length[left[~up]] /= 2
        active = active[moved]
    failed[active] = True
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(failed | (theta[:, -1] > 1 / SMALL), np.nan, 1 / theta[:, -1])
    return theta[:, :-1] * spread[:, None], spread


def _likelihood(theta, rows, censored, weights, free) -> np.ndarray:
    """
    Compute the log-likelihood of each weighting, apart from a constant; -inf if the inverse spread is not positive.
    """
    u = theta @ rows.T
    terms = np.where(censored, log_ndtr(u), -0.5 * u * u)
    scale = theta[:, -1]
    positive = scale > 0
    logs = free * np.log(np.where(positive, scale, 1.0))
    return np.where(positive, (weights * terms).sum(axis=1) + logs, -np.inf)


def _newton(theta, rows, squares, censored, weights, free) -> tuple[np.ndarray, np.ndarray]:
    """Compute Newton's step, and twice the increase of the log-likelihood that it predicts."""
    u, k = theta @ rows.T, theta.shape[1]
    ratio = np.exp(-0.5 * u * u - LOG_ROOT_2_PI - log_ndtr(u))
    gradient = (weights * np.where(censored, ratio, -u)) @ rows
    gradient[:, -1] += free / theta[:, -1]
    curvature = ((weights * np.where(censored, ratio * (ratio + u), 1.0)) @ squares).reshape(-1, k, k)
    curvature[:, -1, -1] += free / theta[:, -1] ** 2
    step = np.einsum("bij,bj->bi", np.linalg.pinv(curvature, hermitian=True), gradient)
    return step, (step * gradient).sum(axis=1)


def find_ceiling(throughput_bps, sources) -> float:
    """
    Find the ceiling of throughputs in bit/s; NaN if there is none.

    A ceiling is a value with a cluster of values from several regions at most 5 % below it. Up to 2 % of the values, or
    one value, may lie above the ceiling, so an outlier does not hide it; the cluster must have at least 3 times as many
    values.

    sources: The sending region of each value.

    >>> crowd = [970e6, 968e6, 971e6, 969e6, 973e6, 972e6, 400e6, 200e6]
    >>> find_ceiling(crowd, list("abcabcab"))
    973000000.0
    >>> find_ceiling([100e6, 90e6, 81e6, 70e6, 60e6, 50e6], list("abcabc"))
    nan
    """
    values, sources = np.asarray(throughput_bps, dtype=float), np.asarray(sources)
    for n_above, top in enumerate(np.sort(values)[::-1][: max(1, int(MAX_SHARE_ABOVE * len(values))) + 1]):
        crowd = (values >= top * (1 - WITHIN)) & (values <= top)
        n, n_regions = int(crowd.sum()), len(set(sources[crowd]))
        n_band = int(((values >= top * (1 - WITHIN) ** 2) & (values < top * (1 - WITHIN))).sum())
        enough = n >= max(MIN_CROWD, CROWD_TO_ABOVE * n_above) and n_regions >= MIN_REGIONS
        if enough and n >= CROWD_TO_BAND * max(n_band, 1):
            return float(top)
    return nan


@dataclass(frozen=True, repr=False)
class CeilingFit(Result):
    """
    The line of log10(throughput) on distance, with values at a ceiling as lower bounds.

    half_distance: Distance that halves throughput, in km.
    plain_half_distance: The same, by least squares without ceilings.
    slope: Change of log10(bit/s) per 1,000 km.
    rows: Per ordered pair: from_region, to_region, distance_km, value in bit/s, censored.
    """

    half_distance: Estimate
    plain_half_distance: Estimate
    slope: Estimate
    rows: pd.DataFrame


def fit_with_ceiling(pairs: pd.DataFrame) -> CeilingFit:
    """
    Fit log10(throughput) on distance over ordered pairs, with values at the sending cloud's ceiling censored.

    `find_ceiling` finds at most one ceiling per sending cloud. A value of 95 % of the ceiling or more counts as "at
    least 95 % of the ceiling": censoring from slightly below the ceiling costs some precision but adds no bias.

    pairs: Table `pairs` with `distance_km` and `throughput_bps`.

    Raises ParameterError: there are fewer than 3 regions, or too few rows below the ceiling.
    """
    sample = directed(pairs, "throughput_bps")
    require_regions(sample, 3, "a line with a ceiling")
    frame, by_cloud = sample.frame, sample.frame.groupby("from_cloud")
    ceilings = {cloud: find_ceiling(part.value, part.from_region) for cloud, part in by_cloud}
    tops = frame.from_cloud.map({cloud: inf if isnan(top) else top for cloud, top in ceilings.items()})
    limit = tops * (1 - WITHIN)
    censored = (frame.value >= limit).to_numpy()
    x, y = frame.distance_km.to_numpy() / THOUSAND_KM, np.log10(frame.value.to_numpy())
    design = np.column_stack([np.ones_like(x), x])
    held = np.where(censored, np.log10(limit, where=censored, out=np.zeros_like(y)), y)
    coefficients, spread = tobit(design, held, censored)
    if isnan(spread[0]):
        raise ParameterError("the line with a ceiling has no best fit: the values below it have no scatter")
    grouped = units(sample)
    with_ceiling = _slope(grouped, sample.both, design, held, censored, coefficients[0], spread[0])
    ordinary = least_squares(design, y, grouped.first, grouped.second, sample.both, grouped.n)
    as_it_stands = ordinary.combination([0, 1], LEVEL, max(grouped.n - 2, 1))
    common = {
        **sample.counted(grouped),
        "method": METHOD,
        "assumption": NORMAL,
        "warnings": sample.warnings() + grouped.warnings() + _cautions(frame.value, tops, censored),
    }
    change = common | {"claim": "log10(bit/s) changes by {} of distance", "unit": "per 1,000 km"}
    name = "log10 throughput per distance"
    slope = with_ceiling.estimate(quantity=f"{name}, with the ceiling", **change)
    plain = as_it_stands.estimate(quantity=f"{name}, as it stands", **change | {"method": ORDINARY})
    return CeilingFit(
        half_distance=half_distance(slope, "distance that halves throughput, with the ceiling"),
        plain_half_distance=half_distance(plain, "distance that halves throughput, without the ceiling"),
        slope=slope,
        rows=frame.assign(censored=censored),
    )


def _cautions(value: pd.Series, tops: pd.Series, censored: np.ndarray) -> tuple[str, ...]:
    if not censored.any():
        return ("no value is at a ceiling, so this is the line through the unchanged values",)
    cautions = ()
    if above := int((value > tops * (1 + WITHIN)).sum()):
        cautions += (f"{count(above, 'value')} above the ceiling by more than {100 * WITHIN:g} %",)
    if censored.mean() > MOSTLY_CENSORED:
        share = f"{100 * censored.mean():.0f} %"
        cautions += (f"{share} of the rows are at a ceiling: the line beyond it is extrapolated",)
    return cautions


def _slope(grouped: Units, both, design, held, censored, coefficients, spread) -> Part:
    """Estimate the slope of the line with the ceiling."""
    first, second, n_places, n_pairs = grouped.first, grouped.second, grouped.n, int(both.max()) + 1
    without_pair = _refit(design, held, censored, both != np.arange(n_pairs)[:, None], coefficients, spread)
    half = nan
    if n_places >= FEWEST_FOR_INTERVAL:
        places = np.arange(n_places)[:, None]
        without_place = _refit(design, held, censored, (first != places) & (second != places), coefficients, spread)
        half = t_quantile(LEVEL, n_places - 2) * np.sqrt(dyadic.variance(without_place, without_pair))
    naive = t_quantile(LEVEL, max(n_pairs - 3, 1)) * np.sqrt(dyadic.jackknife(without_pair))
    value = float(coefficients[1])
    return Part(
        value, Interval(DYADIC, value - half, value + half), Interval(PAIRS_INDEPENDENT, value - naive, value + naive)
    )


def _refit(design, held, censored, kept, coefficients, spread) -> np.ndarray:
    """Fit the slope to each subset of rows; `kept` is (subsets, rows)."""
    return tobit(design, held, censored, kept.astype(float), (coefficients, spread))[0][:, 1]
