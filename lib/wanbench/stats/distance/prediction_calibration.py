"""How often prediction intervals hold what was measured: regions and pairs left out, predicted, compared."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import percent
from ...regions import light_rtt_ms
from ..regions import dyadic
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL
from ..result import Estimate, Result, exact_binomial, html
from . import prediction_fits
from .predict import LEFT_OUT, QUANTITIES, observe

FOLDS, TURNS = 10, 2
WHAT = {"rtt_ms": "RTT", "throughput_bps": "throughput"}
HOW = {
    "both": f"pairs left out, a {FOLDS}th at a time",
    "one": "each region left out in turn",
    "none": f"groups of regions left out, pairs inside a group predicted, {TURNS} times over",
}


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """
    Coverage of the stated level on what was left out, per quantity and situation.

    Attributes
    ----------
    coverage : dict
        (quantity, situation) to an Estimate: the share of measured values that lie in their intervals, with an
        interval by region.
    left_out : DataFrame
        One row per prediction: quantity, situation, region (the one left out, for "one"), from_region, to_region,
        distance_km, measured, predicted, low, high, covered.
    """

    coverage: dict[tuple[str, str], Estimate]
    left_out: pd.DataFrame
    level: float

    def table(self) -> pd.DataFrame:
        """One row per quantity and situation: coverage, median width, misses on either side, open intervals."""
        rows = []
        for (name, situation), estimate in self.coverage.items():
            part = self._part(name, situation)
            closed = np.isfinite(part.low) & np.isfinite(part.high)
            wide = part.high - part.low if name == "rtt_ms" else part.high / part.low
            error = (part.measured - part.predicted).abs()
            if name != "rtt_ms":
                error = np.exp(np.abs(np.log(part.measured / part.predicted)))
            rows.append(
                {
                    "measured": name,
                    "situation": situation,
                    **estimate.row(),
                    "n_predictions": len(part),
                    "median_width": float(wide[closed].median()),
                    "width_unit": "ms" if name == "rtt_ms" else "times",
                    "median_error": float(error.median()),
                    "below": int((part.measured < part.low).sum()),
                    "above": int((part.measured > part.high).sum()),
                    "open": int((~closed).sum()),
                }
            )
        return pd.DataFrame(rows)

    def by_region(self, name: str = "rtt_ms") -> pd.DataFrame:
        """Coverage of the pairs of each region when it is left out: region, n_pairs, coverage; worst first."""
        part = self._part(name, "one")
        rows = part.groupby("region").covered.agg(["size", "mean"]).reset_index()
        rows.columns = ["region", "n_pairs", "coverage"]
        return rows.sort_values(["coverage", "region"], ignore_index=True)

    DRAWN_BY = "predict_figure.calibration"

    def _part(self, name: str, situation: str) -> pd.DataFrame:
        return self.left_out[(self.left_out.quantity == name) & (self.left_out.situation == situation)]

    def __str__(self) -> str:
        return " ".join(str(each) for each in self.coverage.values())

    def _repr_html_(self) -> str:
        return html(self.coverage.values(), f"Coverage of {percent(self.level)} prediction intervals")


def calibration(
    pairs: pd.DataFrame,
    *,
    level: float = 0.9,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
    seed: int = 0,
) -> Calibration:
    """
    Leave out, predict, compare: what `what_if` would have said of pairs that were measured after all.

    Each prediction is made from the other pairs alone, its interval too; only whether throughput rests on the window
    model or on distance is decided once, on all pairs. The RTT of a pair is the median of both
    directions; each direction's throughput is compared with the one range.

    Parameters
    ----------
    seed : int
        Of the groups in which pairs and regions are left out.
    """
    level = check_level(level)
    observed, names, sample = observe(pairs, rtt_column, throughput_column)
    whole = prediction_fits.core(observed)
    quantities, bases = QUANTITIES[: 2 if whole.base else 1], (whole.base,)
    frames = []
    for situation in prediction_fits.SITUATIONS:
        for kept, asked, region in _parts(observed, situation, np.random.default_rng(seed)):
            frames += _predicted(observed, kept, asked, region, situation, quantities, bases, level)
    if not frames:
        raise ParameterError(
            f"too few pairs to leave any out: {sample.n_pairs} of {sample.n_regions} regions"
        )
    rows = pd.concat(frames, ignore_index=True)
    listed = np.array([*names, ""], dtype=object)
    for column in ("region", "from_region", "to_region"):
        rows[column] = pd.Series(listed[rows[column].to_numpy()], dtype="str")
    coverage = {}
    for name in quantities:
        for situation in prediction_fits.SITUATIONS:
            part = rows[(rows.quantity == name) & (rows.situation == situation)]
            if len(part):
                coverage[name, situation] = _coverage(part, name, situation, level, sample.warnings()[:1])
    return Calibration(coverage, rows, level)


def _parts(observed: prediction_fits.Observed, situation: str, rng: np.random.Generator):
    """What is kept, what is asked, and the region left out (-1: several), part by part."""
    first, second, n = observed.first, observed.second, observed.n_regions
    if situation == "both":
        fold = rng.permutation(len(observed)) % FOLDS
        yield from ((fold != k, fold == k, -1) for k in range(FOLDS))
    elif situation == "one":
        for region in range(n):
            own = (first == region) | (second == region)
            yield ~own, own, region
    else:
        groups = max(2, min(FOLDS, n // 3))
        for _ in range(TURNS):
            fold = rng.permutation(n) % groups
            for k in range(groups):
                a, b = fold[first] == k, fold[second] == k
                yield ~(a | b), a & b, -1


def _predicted(observed, kept, asked, region, situation, quantities, bases, level) -> list[pd.DataFrame]:
    """A frame per quantity of what is asked, predicted from what is kept."""
    train, test = observed.take(kept), observed.take(asked)
    some = train.measured > 0
    if (
        not len(test)
        or len(train) < prediction_fits.FEWEST_PAIRS
        or some.sum() < prediction_fits.FEWEST_REGIONS
    ):
        return []
    known = some[test.first].astype(int) + some[test.second]
    test = test.take(known == ("none", "one", "both").index(situation))
    if not len(test):
        return []
    core = prediction_fits.core(train, bases)
    ends = [np.where(some[each], each, -1) for each in (test.first, test.second)]
    new = prediction_fits.New(*ends, test.distance_km)
    frames = []
    for name in quantities:
        if name == "throughput_bps" and core.throughput is None:
            continue
        found = core.predict(name, situation, new, level)
        said = {"predicted": found.value, "low": found.low, "high": found.high}
        ways = [(test.first, test.second, test.rtt_ms)]
        if name == "rtt_ms":
            floor = light_rtt_ms(test.distance_km)
            said = {key: np.maximum(value, floor) for key, value in said.items()}
        else:
            with np.errstate(over="ignore"):
                said = {key: np.exp(value) for key, value in said.items()}
            back = np.where(test.half_gap != 0, test.log_bps - test.half_gap, nan)
            ways = [
                (test.first, test.second, np.exp(test.log_bps + test.half_gap)),
                (test.second, test.first, np.exp(back)),
            ]
        for sender, receiver, values in ways:
            columns = {
                "quantity": name,
                "situation": situation,
                "region": region,
                "from_region": sender,
                "to_region": receiver,
                "distance_km": test.distance_km,
                "measured": values,
                **said,
            }
            frame = pd.DataFrame(columns)
            frame = frame[frame.measured.notna()]
            frames.append(
                frame.assign(covered=(frame.low <= frame.measured) & (frame.measured <= frame.high))
            )
    return frames


def _coverage(
    part: pd.DataFrame, name: str, situation: str, level: float, notes: tuple[str, ...]
) -> Estimate:
    """Share covered, with an interval from leaving out each region, and each pair, of the comparison."""
    regions = sorted({*part.from_region, *part.to_region})
    index = {region: k for k, region in enumerate(regions)}
    ends = np.sort(np.column_stack([part[name].map(index) for name in ("from_region", "to_region")]), axis=1)
    groups = part.assign(a=ends[:, 0], b=ends[:, 1])
    pairs = groups.groupby(["a", "b"]).covered.agg(["sum", "size"]).reset_index()
    hits, tries = pairs["sum"].to_numpy(dtype=float), pairs["size"].to_numpy(dtype=float)
    share, low, high = share_interval(hits, tries, pairs.a.to_numpy(), pairs.b.to_numpy(), len(regions))
    return Estimate(
        quantity=f"coverage of {WHAT[name]}, {situation}",
        claim=f"{percent(level)} intervals of {WHAT[name]}, with {LEFT_OUT[situation]} left out, hold {{}} of what was "
        "measured",
        estimate=float(share),
        low=float(low),
        high=float(high),
        unit="fraction",
        n=len(pairs),
        n_regions=len(regions),
        method=f"{HOW[situation]}; interval by leaving out regions (dyadic jackknife)",
        assumption="The measured pairs stand for those one wants to predict",
        level=0.95,
        warnings=notes,
    )


def share_interval(hits, tries, first, second, n_regions: int) -> tuple[float, float, float]:
    """A share of tries, and the ends of its 95 % interval by region; at 0 and 1 those of Clopper and Pearson."""
    if n_regions < FEWEST_FOR_INTERVAL:
        return float(hits.sum() / tries.sum()), nan, nan
    share, half = dyadic.ratio(hits, tries, first, second, n_regions, 0.95)
    if share in (0.0, 1.0):
        return share, *exact_binomial(int(share) * n_regions, n_regions, 0.95)
    return share, max(share - half, 0.0), min(share + half, 1.0)
