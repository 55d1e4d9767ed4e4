"""A straight line through unordered pairs, and two correlations, with intervals that know the regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import quantity
from ..result import Interval
from . import clusters, correlation, dyadic, ranks
from . import skew as skewed
from .leave_one_out import LOST, LeaveOut, leave_out
from .ranks import CHUNK_CELLS  # noqa: F401
from .unordered_pairs import FEWEST_FOR_INTERVAL, Sample, require_regions
from .variance_components import Sums, reml

PARAMETERS = 2

SCALED = "jackknife over places, scaled by variance components"
DYADIC = "dyadic-robust variance, leave-one-region-out form"
SANDWICH = "dyadic-robust sandwich"
BOOTSTRAP = "region bootstrap"
REFERENCES = (
    "Fafchamps & Gubert 2007; Cameron & Miller 2014; Aronow, Samii & Assenova 2015; "
    "MacKinnon, Nielsen & Webb 2023"
)
SCALED_REFERENCES = "Quenouille 1956; Bell & McCaffrey 2002; Imbens & Kolesár 2016"
ASSUMPTION = (
    "Pairs without a common place are independent, and the places stand for those one wants to speak of. "
    "Places that share a cable would break it"
)


@dataclass(frozen=True)
class Part:
    """
    One number of the line: its value, its interval, the naive one, and others; `at` gives the interval at a level.
    """

    value: float
    interval: Interval
    naive: Interval
    others: tuple[Interval, ...] = ()
    standard_error: float = nan
    at: Callable[[float], Interval] | None = None


@dataclass(frozen=True)
class Line:
    """
    y = intercept + slope x by ordinary least squares over unordered pairs, with `pearson` and `spearman`.

    `warnings` are those of the sample and of the computation. `band` gives the interval of the line itself.
    `left` holds the standardised line without each unit (`grouped`: the places, unless others were asked for); None
    with too few units for intervals. `moran` says whether units near each other deviate alike, `skew` whether their
    effects are skewed.
    """

    n_pairs: int
    n_regions: int
    intercept: Part
    slope: Part
    pearson: Part
    spearman: Part
    level: float
    method: str
    warnings: tuple[str, ...]
    scale: Scale
    y: np.ndarray
    left: LeaveOut | None = None
    grouped: clusters.Units | None = None
    moran: clusters.Moran | None = None
    skew: skewed.Skew | None = None

    @property
    def n_places(self) -> int:
        """How many units the intervals take as independent."""
        return self.grouped.n

    def band(self, x) -> pd.DataFrame:
        """The line at `x` with the interval of its height: columns x, y, low, high."""
        x = np.asarray(x, dtype=float)
        y = self.intercept.value + self.slope.value * x
        half = np.full_like(y, nan)
        if self.left is not None:
            half = self.left.half(self.scale.height(x), self.level)
        return pd.DataFrame({"x": x, "y": y, "low": y - half, "high": y + half})


@dataclass(frozen=True)
class Scale:
    """Means and standard deviations of x and y; the line is fitted to both centred and scaled."""

    mean_x: float
    mean_y: float
    sd_x: float
    sd_y: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Scale:
        return cls(x.mean(), y.mean(), x.std(), y.std() or 1.0)

    def standard(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and y centred and scaled."""
        return (x - self.mean_x) / self.sd_x, (y - self.mean_y) / self.sd_y

    def back(self, solved: np.ndarray) -> np.ndarray:
        """(intercept, slope, r) of x and y from that of the standardised ones."""
        slope = solved[..., 1] * self.sd_y / self.sd_x
        intercept = self.mean_y + self.sd_y * solved[..., 0] - slope * self.mean_x
        return np.stack([intercept, slope, solved[..., 2]], axis=-1)

    def height(self, x) -> np.ndarray:
        """The combinations of the standardised coefficients whose spread is that of the line's height at x."""
        x = np.asarray(x, dtype=float)
        return self.sd_y * np.stack([np.ones_like(x), (x - self.mean_x) / self.sd_x], axis=-1)

    @property
    def slope(self) -> np.ndarray:
        """The combination whose spread is that of the slope."""
        return np.array([0.0, self.sd_y / self.sd_x])


def straight_line(
    sample: Sample,
    x: np.ndarray,
    y: np.ndarray,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster=clusters.PLACE,
) -> Line:
    """
    Fit the line, with intervals at the level of places, or of other clusters of regions (`clusters.units`).

    All rest on the line without each place in turn (`leaveout`). Intervals of slope and intercept are symmetric,
    with degrees of freedom of their own; those of the correlations are symmetric in Fisher's z. Beside them stand
    the same jackknife less that over pairs, the sandwich, and percentiles of a bootstrap over regions. `make
    validity` counts how often each covers; `coverage` holds the result.

    Raises
    ------
    ParameterError
        With fewer than 3 regions or pairs, or where x is the same for every pair.
    """
    level = check_level(level)
    require_regions(sample, 3, "a line")
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 3:
        raise ParameterError(f"a line needs at least 3 pairs; there are {len(x)}")
    if np.ptp(x) <= 1e-9 * max(abs(x).max(), 1.0):
        same = quantity(sample.frame.distance_km.iloc[0], "km")
        raise ParameterError(f"every pair has the same distance ({same}): no line can be fitted to it")
    grouped = clusters.units(sample, cluster)
    first, second, n_units = grouped.first, grouped.second, grouped.n
    scale = Scale.of(x, y)
    zx, zy = scale.standard(x, y)
    moments = np.column_stack([np.ones_like(zx), zx, zy, zx * zx, zx * zy, zy * zy])
    total = moments.sum(axis=0)
    centre = scale.back(solve(total))
    ranked = ranks.spearman(x, y, np.ones((1, len(x))))[0]
    naive = _naive(x, y, centre, ranked, level)
    notes, left, regional, others = [*grouped.warnings()], None, [Interval(SCALED)] * 4, [()] * 4
    errors, at = [nan] * 4, [None] * 4
    if n_units >= FEWEST_FOR_INTERVAL:
        sums = Sums.of(np.column_stack([np.ones_like(zx), zx]), zy, first, second, n_units)
        left = leave_out(sums, reml(sums))
        apart = np.flatnonzero((np.abs(left.lost) > LOST).any(axis=(1, 2)))
        if len(apart):
            named = grouped.names[apart[0]]
            notes.append(f"no interval: without {named} too little is left to fit a line")
        without = total - dyadic.region_sums(moments, first, second, n_units)
        rho = ranks.spearman_without(x, y, first, second, n_units)
        at = [
            lambda level: _symmetric(centre[0], left.half(scale.height(0.0), level)),
            lambda level: _symmetric(centre[1], left.half(scale.slope, level)),
            lambda level: correlation.pearson(total, without, left, level),
            lambda level: correlation.spearman(ranked, rho, left, level),
        ]
        regional = [each(level) for each in at]
        errors[:2] = (float(np.sqrt(left.spread(each)[0])) for each in (scale.height(0.0), scale.slope))
        weights = dyadic.region_weights(n_units, resamples, seed)
        resampled = scale.back(solve(dyadic.weighted_sums(weights, moments, first, second)))
        joined = grouped.both
        between = total - dyadic.sums(moments, joined, joined.max() + 1)
        less = _less_pairs(centre, scale.back(solve(without)), scale.back(solve(between)), level)
        others = _others(x, y, centre, grouped, less, resampled, level)
    values = (*centre, ranked)
    parts = [Part(*each) for each in zip(values, regional, naive, others, errors, at, strict=True)]
    residual = y - centre[0] - centre[1] * x
    return Line(
        sample.n_pairs,
        sample.n_regions,
        *parts,
        level=level,
        method=_method(scale, left),
        warnings=(*sample.warnings(), *notes),
        scale=scale,
        y=y,
        left=left,
        grouped=grouped,
        moran=clusters.moran(residual, sample.frame.distance_km.to_numpy(), grouped),
        skew=skewed.skew(residual, x, grouped),
    )


def _method(scale: Scale, left: LeaveOut | None) -> str:
    said = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
    freedom = float(left.spread(scale.slope)[1]) if left is not None else nan
    return said + (f", t with {freedom:.1f} degrees of freedom for the slope" if freedom > 0 else "")


def _symmetric(value: float, half: float) -> Interval:
    return Interval(SCALED, value - half, value + half)


def solve(sums: np.ndarray) -> np.ndarray:
    """(intercept, slope, r) from sums of 1, x, y, xx, xy, yy along the last axis; NaN where undetermined."""
    n, sx, sy, sxx, sxy, syy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xx, xy, yy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
        slope = np.where(xx > 1e-9, xy / xx, nan)
        r = np.where((xx > 1e-9) & (yy > 1e-12), np.clip(xy / np.sqrt(xx * yy), -1, 1), nan)
        return np.stack([(sy - slope * sx) / n, slope, r], axis=-1)


def _quantile(level: float, n_regions: int) -> float:
    return stats.t.ppf((1 + level) / 2, n_regions - PARAMETERS)


def _less_pairs(centre, without_region, without_pair, level) -> list[Interval]:
    """Intercept, slope and r by the jackknife over regions less that over pairs."""
    t, found = _quantile(level, len(without_region)), []
    half = t * np.sqrt(dyadic.variance(without_region[:, :2], without_pair[:, :2]))
    found = [Interval(DYADIC, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    z = correlation.fisher_z(centre[2])
    left = [correlation.fisher_z(each[:, 2]) for each in (without_region, without_pair)]
    wide = t * np.sqrt(dyadic.variance(*left))
    return [*found, Interval(DYADIC, np.tanh(z - wide), np.tanh(z + wide))]


def _others(x, y, centre, grouped: clusters.Units, less, resampled, level) -> list[tuple[Interval, ...]]:
    """The plain jackknife and the bootstrap (intercept, slope, r), the sandwich (not r); none for rho."""
    design = np.column_stack([np.ones_like(x), x])
    residual = y - design @ centre[:2]
    spread = np.diag(dyadic.sandwich(design, residual, grouped.first, grouped.second, grouped.n))
    half = _quantile(level, grouped.n) * np.sqrt(np.where(spread >= 0, spread, nan))
    tails = [(1 - level) / 2, (1 + level) / 2]
    finite = resampled[np.isfinite(resampled).all(axis=1)]
    ends = np.quantile(finite, tails, axis=0) if len(finite) else np.full((2, 3), nan)
    drawn = [Interval(BOOTSTRAP, *ends[:, k]) for k in range(3)]
    robust = [Interval(SANDWICH, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    return [(less[0], robust[0], drawn[0]), (less[1], robust[1], drawn[1]), (less[2], drawn[2]), ()]


def _naive(x, y, centre, ranked, level) -> list[Interval]:
    """Intervals that take pairs as independent: OLS with t; Fisher's z (rho: Bonett & Wright 2000)."""
    n, name = len(x), "pairs taken as independent"
    design = np.column_stack([np.ones(n), x - x.mean()])
    residual = y - centre[0] - centre[1] * x
    sigma2 = residual @ residual / (n - PARAMETERS)
    slope = sigma2 / (design[:, 1] @ design[:, 1])
    half = stats.t.ppf((1 + level) / 2, n - PARAMETERS) * np.sqrt([sigma2 / n + slope * x.mean() ** 2, slope])
    found = [Interval(name, centre[k] - half[k], centre[k] + half[k]) for k in range(2)]
    z = stats.norm.ppf((1 + level) / 2)
    for r, factor in ((centre[2], 1.0), (ranked, 1 + ranked**2 / 2)):
        wide = z * np.sqrt(factor / (n - 3)) if n > 3 else nan
        found.append(
            Interval(name, np.tanh(correlation.fisher_z(r) - wide), np.tanh(correlation.fisher_z(r) + wide))
        )
    return found
