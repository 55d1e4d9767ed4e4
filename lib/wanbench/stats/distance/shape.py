"""Which straight line throughput follows: log throughput on distance, on log distance, or on log RTT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent
from ..regions import dyadic
from ..regions.line import ASSUMPTION
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL, Sample, left_out_of_any, require_regions, unordered
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html

PARAMETERS = 3
ENDS = ["region_a", "region_b"]
METHOD = (
    "least squares over unordered pairs; each region's pairs predicted from the pairs without it, so each pair twice; "
    "interval of root mean square errors from the jackknife over regions less that over pairs, the same pairs for "
    "each line"
)


@dataclass(frozen=True, repr=False)
class Shapes(Result):
    """
    Three lines for log10 throughput, compared on the same pairs.

    Attributes
    ----------
    best : str
        The line with the least prediction error on left-out regions.
    told : bool
        Whether the intervals tell it from every other line.
    errors : dict of Estimate
        By line: the factor by which predictions for a left-out region are typically off.
    ratios : dict of Estimate
        By "worse over better": the error of log10 throughput of one line over that of another.
    lines : DataFrame
        line, intercept, slope, r_squared, aic, aic_above_least, error_factor.
    pairs : DataFrame
        Per unordered pair: region_a, region_b, cloud_pair, distance_km, rtt_ms if known, throughput_bps and, for each
        line, the fitted throughput and the error of the two predictions (root mean square, of log10).
    """

    best: str
    told: bool
    errors: dict[str, Estimate]
    ratios: dict[str, Estimate]
    lines: pd.DataFrame
    pairs: pd.DataFrame
    left_out: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (*self.errors.values(), *self.ratios.values())

    def fitted(self, line: str, distance_km=None, rtt_ms=None) -> np.ndarray:
        """Throughput in bit/s that a line says at distances in km, or at RTTs in ms for "log RTT"."""
        if line not in self.errors:
            raise ParameterError(f"line {line!r}: there are {', '.join(self.errors)}")
        at = rtt_ms if line == "log RTT" else distance_km
        if at is None:
            raise ParameterError(
                f"the line {line!r} needs {'rtt_ms' if line == 'log RTT' else 'distance_km'}"
            )
        row = self.lines.set_index("line").loc[line]
        x = np.asarray(at, dtype=float)
        x = x / 1000 if line == "distance" else np.log10(x)
        return 10 ** (row.intercept + row.slope * x)

    DRAWN_BY = "shape_figure.throughput_lines"

    def __str__(self) -> str:
        return " ".join([self._verdict(), self._by_aic(), *map(str, self.ratios.values())])

    def _verdict(self) -> str:
        off = {name: number(each.estimate, 2) for name, each in self.errors.items()}
        listed = ", ".join(f"that on {name} by {off[name]}" for name in off if name != self.best)
        if self.told:
            start = f"Log throughput follows {self.best} best"
        else:
            against = {name: self.ratios[f"{name} over {self.best}"] for name in off if name != self.best}
            unclear = [name for name, each in against.items() if not each.low > 1]
            start = f"The data do not tell whether {self.best} or {' or '.join(unclear)} fits better"
        error = f"predicting the pairs of a region left out, the line on {self.best} is off by a factor of"
        return f"{start}: {error} {off[self.best]}, {listed}."

    def _by_aic(self) -> str:
        first, second = self.lines.sort_values("aic").head(2).itertuples()
        agrees = "also" if first.line == self.best else "however"
        ahead = f"{number(second.aic_above_least, 1)} below {second.line}"
        taken = "it takes pairs as independent, so its differences are too large"
        return f"AIC {agrees} puts {first.line} first, {ahead}; {taken}."

    def _repr_html_(self) -> str:
        said = f"<p>{escape(self._verdict())} {escape(self._by_aic())}</p>"
        listed = self.lines.to_html(index=False, float_format="%.4g")
        return said + html(self.estimates, "Which line throughput follows") + listed


def compare_shapes(
    pairs: pd.DataFrame,
    *,
    column: str = "throughput_bps",
    rtt_column: str | None = "rtt_ms",
    min_distance_km: float = 100.0,
    level: float = 0.95,
) -> Shapes:
    """
    Fit log10(throughput) on distance, on log10 distance and on log10 RTT to the same pairs, and score each.

    Two scores: Akaike's criterion n ln(RSS / n) + 2 k, which takes pairs as independent, and the error of predicting
    all pairs of a region from the pairs of the others, which decides. The interval of the ratio of
    two errors takes the lines as fitted, which makes it a little too narrow with few regions.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    column : str
        In bit/s; the geometric mean of both directions.
    rtt_column : str, optional
        In ms, the median of both directions; None, or a column that the pairs lack, leaves that line out.
    min_distance_km : float
        Nearer pairs are left out, and counted: the logarithm of a distance near 0 means nothing.

    Raises
    ------
    ParameterError
        With fewer than 4 regions or 4 pairs, and where some region's pairs are needed to fit a line at all.
    """
    level = check_level(level)
    if not min_distance_km > 0:
        raise ParameterError(f"min_distance_km={min_distance_km!r}: it must be more than 0")
    sample, near = _sample(pairs, column, rtt_column, min_distance_km)
    require_regions(sample, 4, "a comparison of lines")
    frame, n_regions, first, second = sample.frame, sample.n_regions, sample.first, sample.second
    if len(frame) < 4:
        raise ParameterError(f"a comparison of lines needs at least 4 pairs; there are {len(frame)}")
    notes = list(sample.warnings())
    if len(near):
        n_near = near[ENDS].drop_duplicates().shape[0]
        notes.append(f"{count(n_near, 'pair')} nearer than {min_distance_km:g} km left out")
    y = np.log10(frame.throughput_bps.to_numpy())
    predictors = {
        "distance": frame.distance_km.to_numpy() / 1000,
        "log distance": np.log10(frame.distance_km.to_numpy()),
    }
    if "rtt_ms" in frame:
        predictors["log RTT"] = np.log10(frame.rtt_ms.to_numpy())
    squares, rows = {}, []
    for name, x in predictors.items():
        line, squares[name] = _score(x, y, first, second, n_regions, sample.regions)
        rows.append({"line": name, **line})
        frame = frame.assign(
            **{
                f"{name.replace(' ', '_').lower()}_bps": 10 ** (line["intercept"] + line["slope"] * x),
                f"{name.replace(' ', '_').lower()}_error": np.sqrt(squares[name]),
            }
        )
    lines = pd.DataFrame(rows)
    lines["aic_above_least"] = lines.aic - lines.aic.min()
    lines["error_factor"] = [10 ** np.sqrt(squares[name].mean()) for name in lines.line]
    best = min(squares, key=lambda name: squares[name].mean())
    make = _Maker(sample, level, tuple(notes))
    errors = {
        name: make(
            {name: 0.5},
            squares,
            f"prediction error on {name}, regions left out",
            f"A line on {name} is typically off by a factor of {{}} for a region left out",
        ).transformed(
            lambda rms: 10**rms,
            quantity=f"prediction error on {name}, regions left out",
            claim=f"A line on {name} is typically off by a factor of {{}} for a region left out",
            unit="",
        )
        for name in squares
    }
    ratios = {
        f"{worse} over {better}": _said(
            make(
                {worse: 0.5, better: -0.5},
                squares,
                f"error on {worse} over error on {better}, regions left out",
                f"The error of log10 throughput on {worse} is {{}} that on {better}",
            )
        )
        for better, worse in combinations(sorted(squares, key=lambda name: squares[name].mean()), 2)
    }
    told = all(each.low > 1 for name, each in ratios.items() if name.endswith(f" over {best}"))
    left_out = pd.concat([sample.left_out, near.drop(columns=ENDS)], ignore_index=True)
    return Shapes(best, told, errors, ratios, lines, frame, left_out)


def _sample(
    pairs, column: str, rtt_column: str | None, min_distance_km: float
) -> tuple[Sample, pd.DataFrame]:
    """Unordered pairs with throughput, and RTT if asked for; and the rows of those that are too near."""
    throughput = unordered(pairs, column, combine="geometric mean")
    frame, left_out = throughput.frame.rename(columns={"value": "throughput_bps"}), throughput.left_out
    if rtt_column is not None and rtt_column in pairs.columns and pairs[rtt_column].notna().any():
        rtt = unordered(pairs, rtt_column)
        frame = frame.merge(rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"}), on=ENDS)
        left_out = left_out_of_any(throughput, rtt)
    far = frame.distance_km >= min_distance_km
    both = pairs[["from_region", "to_region"]].to_numpy(dtype=object)
    rows = pairs.assign(**dict(zip(ENDS, np.sort(both, axis=1).T, strict=True)))
    near = rows.merge(frame.loc[~far, ENDS], on=ENDS).assign(reason=f"nearer than {min_distance_km:g} km")
    return Sample(column, frame[far].reset_index(drop=True), left_out), near


def _score(x, y, first, second, n_regions: int, regions: list[str]) -> tuple[dict, np.ndarray]:
    """The line through all pairs, and per pair the mean square of its two predictions' errors."""
    centred = x - x.mean()
    moments = np.column_stack([np.ones_like(x), centred, y, centred**2, centred * y])
    whole = moments.sum(axis=0)
    left = np.vstack([whole, whole - dyadic.region_sums(moments, first, second, n_regions)])
    n, sx, sy, sxx, sxy = left.T
    with np.errstate(divide="ignore", invalid="ignore"):
        width = sxx - sx * sx / n
        known = (n > 2) & (width > 1e-9 * max(whole[3], 1e-300))
        slope = np.where(known, (sxy - sx * sy / n) / width, np.nan)
        height = (sy - slope * sx) / n
    if not known.all():
        lost = int(np.flatnonzero(~known)[0])
        where = "" if lost == 0 else f" without {regions[lost - 1]}"
        raise ParameterError(f"{where.strip() or 'here'}: the pairs are too few or too alike to fit a line")
    errors = [y - height[1 + end] - slope[1 + end] * centred for end in (first, second)]
    rss = float(((y - height[0] - slope[0] * centred) ** 2).sum())
    spread = float(((y - y.mean()) ** 2).sum())
    line = {
        "intercept": float(height[0] - slope[0] * x.mean()),
        "slope": float(slope[0]),
        "r_squared": 1 - rss / spread if spread > 0 else np.nan,
        "aic": len(y) * float(np.log(max(rss, 1e-300) / len(y))) + 2 * PARAMETERS,
    }
    return line, (errors[0] ** 2 + errors[1] ** 2) / 2


@dataclass(frozen=True)
class _Maker:
    sample: Sample
    level: float
    warnings: tuple[str, ...]

    def __call__(
        self, powers: dict[str, float], squares: dict[str, np.ndarray], quantity: str, claim: str
    ) -> Estimate:
        """The product of mean squares to these powers, with its interval on the logarithm."""
        stack = np.column_stack([squares[name] for name in powers])
        exponents = np.array([*powers.values()])
        total, n = stack.sum(axis=0), len(stack)
        first, second, n_regions = self.sample.first, self.sample.second, self.sample.n_regions
        ones = np.ones((n, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(np.log(total / n) @ exponents)
            by_pair = np.log((total - stack) / (n - 1)) @ exponents
            counts = n - dyadic.region_sums(ones, first, second, n_regions)
            by_region = (
                np.log((total - dyadic.region_sums(stack, first, second, n_regions)) / counts) @ exponents
            )
        naive = float(np.sqrt(dyadic.jackknife(by_pair))) * stats.t.ppf((1 + self.level) / 2, n - 1)
        half = np.nan
        if n_regions >= FEWEST_FOR_INTERVAL:
            half = float(np.sqrt(dyadic.variance(by_region, by_pair)))
            half *= stats.t.ppf((1 + self.level) / 2, n_regions - 2)
        ends = [float(np.exp(value + each)) for each in (0.0, -half, half, -naive, naive)]
        return Estimate(
            quantity=quantity,
            claim=claim,
            estimate=ends[0],
            low=ends[1],
            high=ends[2],
            unit="times" if len(powers) > 1 else "",
            n=n,
            n_regions=n_regions,
            method=METHOD,
            assumption=f"The lines themselves are taken as fitted. {ASSUMPTION}",
            level=self.level,
            naive=Interval(PAIRS_INDEPENDENT, ends[3], ends[4]),
            warnings=self.warnings,
        )


def _said(ratio: Estimate) -> Estimate:
    """The ratio of errors, with what the interval allows to say."""
    if ratio.low > 1 or np.isnan(ratio.low):
        return ratio
    return replace(ratio, claim=f"{ratio.claim}, which may be chance at the level {percent(ratio.level)}")
