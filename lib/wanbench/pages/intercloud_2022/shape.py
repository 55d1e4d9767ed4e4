"""Which straight line fits throughput: log throughput on distance, on log distance, or on log RTT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number, percent
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import ASSUMPTION
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, left_out_of_any, require_regions, unordered
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile

NEAREST_KM = 100.0  # The logarithm of a distance near 0 is meaningless
N_PARAMETERS = 3  # Parameters of a line: intercept, slope, and the variance about it
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

    best: The line with the smallest prediction error on left-out regions.
    decided: Whether the intervals separate it from every other line.
    errors: By line: the typical factor between prediction and measurement for a left-out region.
    ratios: By (worse, better): the error of log10 throughput of one line over that of another.
    lines: line, intercept, slope, r_squared, aic, aic_above_smallest.
    pairs: The unordered pairs in use.
    """

    best: str
    decided: bool
    errors: dict[str, Estimate]
    ratios: dict[tuple[str, str], Estimate]
    lines: pd.DataFrame
    pairs: pd.DataFrame

    TITLE = "Which line throughput follows"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (*self.errors.values(), *self.ratios.values())

    @property
    def sentence(self) -> str:
        return " ".join([self._verdict(), self._by_aic(), *(ratio.sentence for ratio in self.ratios.values())])

    def formatted_table(self) -> pd.DataFrame:
        rows = [
            (
                f"on {line.line}",
                self.errors[line.line].formatted,
                self.errors[line.line].formatted_interval,
                number(line.r_squared, 3),
                number(line.aic_above_smallest, 1),
            )
            for line in self.lines.itertuples()
        ]
        heads = ["Line", "Off by a factor of", f"{percent(LEVEL)} interval", "R²", "AIC above the smallest"]
        return pd.DataFrame(rows, columns=heads)

    def _verdict(self) -> str:
        factors = {name: number(error.estimate, 2) for name, error in self.errors.items()}
        others = [name for name in factors if name != self.best]
        listed = ", ".join(f"that on {name} by {factors[name]}" for name in others)
        if self.decided:
            start = f"Log throughput follows {self.best} best"
        else:
            unclear = [name for name in others if not self.ratios[name, self.best].low > 1]
            start = f"The data do not tell whether {self.best} or {' or '.join(unclear)} fits better"
        error = f"for the pairs of a left-out region, the line on {self.best} is off by a factor of"
        return f"{start}: {error} {factors[self.best]}, {listed}."

    def _by_aic(self) -> str:
        first, second = self.lines.sort_values("aic").head(2).itertuples()
        agrees = "also" if first.line == self.best else "however"
        ahead = f"{number(second.aic_above_smallest, 1)} below {second.line}"
        return (
            f"AIC {agrees} puts {first.line} first, {ahead}; it takes pairs as independent, so its differences are too "
            "large."
        )


def compare_shapes(pairs: pd.DataFrame) -> Shapes:
    """
    Fit log10(throughput) on distance, on log10 distance and on log10 RTT to the same pairs, and score each.

    There are two scores. Akaike's criterion n ln(RSS / n) + 2 k takes pairs as independent. The decisive score is the
    error of predicting all pairs of a region from the pairs of the others. The interval of the ratio of two errors
    ignores the uncertainty of the fitted lines, so it is a little too narrow with few regions. Pairs nearer than 100 km
    are left out, and counted.

    Raises ParameterError: with fewer than 4 regions or 4 pairs, or if no line can be fitted once some region is left
        out.
    """
    sample, n_near = _sample(pairs)
    require_regions(sample, 4, "a comparison of lines")
    frame = sample.frame
    if len(frame) < 4:
        raise ParameterError(f"a comparison of lines needs at least 4 pairs; there are {len(frame)}")
    notes = sample.warnings()
    if n_near:
        notes += (f"{count(n_near, 'pair')} nearer than {NEAREST_KM:g} km left out",)
    y = np.log10(frame.throughput_bps.to_numpy())
    predictors = {
        "distance": frame.distance_km.to_numpy() / THOUSAND_KM,
        "log distance": np.log10(frame.distance_km.to_numpy()),
        "log RTT": np.log10(frame.rtt_ms.to_numpy()),
    }
    squares, rows = {}, []
    for name, x in predictors.items():
        line, squares[name] = _score(x, y, sample)
        rows.append({"line": name, **line})
    lines = pd.DataFrame(rows)
    lines["aic_above_smallest"] = lines.aic - lines.aic.min()
    given = (squares, sample, notes)
    errors = {
        name: _estimate(
            {name: 0.5},
            *given,
            change=lambda log: 10 ** np.exp(log),
            quantity=f"prediction error on {name}, regions left out",
            claim=f"A line on {name} is typically off by a factor of {{}} for a region left out",
            unit="",
        )
        for name in squares
    }
    ranking = sorted(squares, key=lambda name: squares[name].mean())
    ratios = {
        (worse, better): _estimate(
            {worse: 0.5, better: -0.5},
            *given,
            change=np.exp,
            quantity=f"error on {worse} over error on {better}, regions left out",
            claim=f"The error of log10 throughput on {worse} is {{}} that on {better}",
            unit="times",
        )
        for better, worse in combinations(ranking, 2)
    }
    best = ranking[0]
    decided = all(ratio.low > 1 for (_, better), ratio in ratios.items() if better == best)
    return Shapes(best, decided, errors, ratios, lines, frame)


def _sample(pairs: pd.DataFrame) -> tuple[Sample, int]:
    """Select the unordered pairs with throughput and RTT that are far enough, and count those that are not."""
    throughput, rtt = unordered(pairs, "throughput_bps", combine="geometric mean"), unordered(pairs, "rtt_ms")
    frame = throughput.frame.rename(columns={"value": "throughput_bps"})
    frame = frame.merge(rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"}), on=ENDS)
    far = frame.distance_km >= NEAREST_KM
    left_out = left_out_of_any(throughput, rtt)
    return Sample("throughput_bps", frame[far].reset_index(drop=True), left_out), int((~far).sum())


def _score(x: np.ndarray, y: np.ndarray, sample: Sample) -> tuple[dict, np.ndarray]:
    """Return the line through all pairs, and per pair the mean square of its two predictions' errors."""
    first, second, n_regions = sample.first, sample.second, sample.n_regions
    centred = x - x.mean()
    # Row 0 holds the sums over all pairs, row 1 + k those without region k: every line follows from such sums.
    moments = np.column_stack([np.ones_like(x), centred, y, centred**2, centred * y])
    whole = moments.sum(axis=0)
    left = np.vstack([whole, whole - dyadic.region_sums(moments, first, second, n_regions)])
    n, sx, sy, sxx, sxy = left.T
    with np.errstate(divide="ignore", invalid="ignore"):
        width = sxx - sx * sx / n
        determined = (n > 2) & (width > 1e-9 * max(whole[3], 1e-300))
        slope = np.where(determined, (sxy - sx * sy / n) / width, np.nan)
        height = (sy - slope * sx) / n
    if not determined.all():
        lost = int(np.flatnonzero(~determined)[0])
        where = f"without {sample.regions[lost - 1]}" if lost else "here"
        raise ParameterError(f"{where}: the pairs are too few or too alike to fit a line")
    errors = [y - height[1 + end] - slope[1 + end] * centred for end in (first, second)]
    rss = float(((y - height[0] - slope[0] * centred) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    line = {
        "intercept": float(height[0] - slope[0] * x.mean()),
        "slope": float(slope[0]),
        "r_squared": 1 - rss / total if total > 0 else np.nan,
        "aic": len(y) * float(np.log(max(rss, 1e-300) / len(y))) + 2 * N_PARAMETERS,
    }
    return line, (errors[0] ** 2 + errors[1] ** 2) / 2


def _estimate(
    powers: dict[str, float], squares, sample: Sample, notes, *, change: Callable[[float], float], claim: str, **texts
) -> Estimate:
    """A product of mean squares to these powers; its interval is that of the logarithm, which `change` takes back."""
    stack = np.column_stack([squares[name] for name in powers])
    exponents = np.array([*powers.values()])
    total, n = stack.sum(axis=0), len(stack)
    n_regions = sample.n_regions
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(np.log(total / n) @ exponents)
        without = dyadic.means_without(stack, sample.first, sample.second, n_regions)
        by_region, by_pair = (np.log(means) @ exponents for means in without)
    naive = np.sqrt(dyadic.jackknife(by_pair)) * t_quantile(LEVEL, n - 1)
    half = np.nan
    if n_regions >= FEWEST_FOR_INTERVAL:
        half = np.sqrt(dyadic.variance(by_region, by_pair)) * t_quantile(LEVEL, n_regions - 2)
    with np.errstate(over="ignore"):
        ends = [float(change(value + step)) for step in (0.0, -half, half, -naive, naive)]
    if len(powers) > 1 and ends[1] <= 1:
        claim = f"{claim}, which may be chance at the level {percent(LEVEL)}"
    return Estimate(
        claim=claim,
        estimate=ends[0],
        low=ends[1],
        high=ends[2],
        n=n,
        n_regions=n_regions,
        method=METHOD,
        assumption=f"The uncertainty of the fitted lines is not included. {ASSUMPTION}",
        naive=Interval(PAIRS_INDEPENDENT, ends[3], ends[4]),
        warnings=notes,
        **texts,
    )
