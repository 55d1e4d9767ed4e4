"""Count how often prediction intervals contain measured values that were left out of the fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_level, check_number
from wanbench.errors import ParameterError
from wanbench.formatting import percent
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL
from wanbench.methods.result import Estimate, Result, exact_binomial
from wanbench.regions import light_rtt_ms

from . import prediction_fits
from .prediction import LEFT_OUT, UNITS, observe
from .prediction_fits import SITUATIONS

FOLDS = 10  # Number of groups of pairs, or of regions, that are left out in turn: nine tenths remain for the fit
REPEATS = 2  # Number of random groupings of regions, because each predicts only the few pairs inside its groups
NAMES = {"rtt_ms": "RTT", "throughput_bps": "throughput"}
HOW = {
    "both": f"pairs left out, a {FOLDS}th at a time",
    "one": "each region left out in turn",
    "none": f"groups of regions left out in turn, pairs inside the group predicted, with {REPEATS} groupings",
}


@dataclass(frozen=True, repr=False)
class PredictionCoverage(Result):
    """
    The share of left-out values inside their prediction intervals, per quantity and situation.

    coverage: Maps (quantity, situation) to the share as an Estimate, with an interval whose units are regions.
    left_out: One row per prediction: quantity, situation, region (that was left out, in situation "one"), from_region,
        to_region, distance_km, measured, predicted, low, high, covered.
    """

    coverage: dict[tuple[str, str], Estimate]
    left_out: pd.DataFrame
    level: float

    TITLE = "Coverage of prediction intervals"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.coverage.values())

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)


def prediction_coverage(pairs: pd.DataFrame, *, level: float = 0.9, seed: int = 0) -> PredictionCoverage:
    """
    Leave out regions and pairs, predict them as `what_if` does, and compare with the measured values.

    Each prediction and its interval use only the other pairs, except for the choice between window model and distance,
    which is made with all pairs. Both directions of a pair share one predicted range of throughput.
    """
    level = check_level(level)
    check_number("seed", seed, 0, whole=True)
    observed, sample = observe(pairs)
    base = prediction_fits.fit_both(observed).base
    frames = []
    for situation in SITUATIONS:
        for kept, tested, region in _splits(observed, situation, np.random.default_rng(seed)):
            frames += _predicted(observed.take(kept), observed.take(tested), region, situation, base, level)
    if not frames:
        raise ParameterError(f"too few pairs to leave any out: {sample.n_pairs} of {sample.n_regions} regions")
    rows = pd.concat(frames, ignore_index=True)
    names = np.array([*sample.regions, ""], dtype=object)
    for column in ("region", "from_region", "to_region"):
        rows[column] = pd.Series(names[rows[column].to_numpy()], dtype="str")
    groups = rows.groupby(["quantity", "situation"])
    coverage = {
        (name, situation): _coverage(groups.get_group((name, situation)), name, situation, level, sample.warnings()[:1])
        for name in UNITS
        for situation in SITUATIONS
        if (name, situation) in groups.groups
    }
    return PredictionCoverage(coverage, rows, level)


def _splits(
    observed: prediction_fits.ObservedPairs, situation: str, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield the kept pairs, the tested pairs and the left-out region (-1 for several) of each split."""
    first, second, n = observed.first, observed.second, observed.n_regions
    if situation == "both":
        fold = rng.permutation(len(observed)) % FOLDS
        yield from ((fold != k, fold == k, -1) for k in range(FOLDS))
    elif situation == "one":
        for region in range(n):
            own = (first == region) | (second == region)
            yield ~own, own, region
    else:
        n_groups = max(2, min(FOLDS, n // 3))
        for _ in range(REPEATS):
            fold = rng.permutation(n) % n_groups
            for k in range(n_groups):
                a, b = fold[first] == k, fold[second] == k
                yield ~(a | b), a & b, -1


def _predicted(train, test, region: int, situation: str, base: str, level: float) -> list[pd.DataFrame]:
    """
    Predict the pairs of `test` from `train`; return a frame per quantity and direction, or [] if `train` has too few
    pairs.
    """
    seen = train.measured > 0
    if len(train) < prediction_fits.MIN_PAIRS or seen.sum() < prediction_fits.MIN_REGIONS:
        return []
    n_seen = seen[test.first].astype(int) + seen[test.second]
    test = test.take(n_seen == ("none", "one", "both").index(situation))
    if not len(test):
        return []
    fits = prediction_fits.fit_both(train, (base,))
    ends = [np.where(seen[indices], indices, -1) for indices in (test.first, test.second)]
    new = prediction_fits.NewPairs(*ends, test.distance_km)
    frames = []
    for name in UNITS if base and fits.throughput is not None else ("rtt_ms",):
        predicted = fits.predict(name, situation, new, level)
        ranges = {"predicted": predicted.value, "low": predicted.low, "high": predicted.high}
        if name == "rtt_ms":
            floor = light_rtt_ms(test.distance_km)
            ranges = {key: np.maximum(value, floor) for key, value in ranges.items()}
            directions = [(test.first, test.second, test.rtt_ms)]
        else:
            with np.errstate(over="ignore"):
                ranges = {key: np.exp(value) for key, value in ranges.items()}
            back = np.where(test.half_gap != 0, test.log_bps - test.half_gap, nan)
            directions = [
                (test.first, test.second, np.exp(test.log_bps + test.half_gap)),
                (test.second, test.first, np.exp(back)),
            ]
        for sender, receiver, measured in directions:
            columns = {
                "quantity": name,
                "situation": situation,
                "region": region,
                "from_region": sender,
                "to_region": receiver,
                "distance_km": test.distance_km,
                "measured": measured,
                **ranges,
                "covered": (ranges["low"] <= measured) & (measured <= ranges["high"]),
            }
            frames.append(pd.DataFrame(columns).dropna(subset="measured"))
    return frames


def _coverage(part: pd.DataFrame, name: str, situation: str, level: float, notes: tuple[str, ...]) -> Estimate:
    """Estimate the covered share of `part`, the predictions of one quantity and situation."""
    ends = np.sort(part[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    pairs = part.covered.groupby([ends[:, 0], ends[:, 1]]).agg(["sum", "size"])
    *share, n_regions = share_interval(pairs["sum"], pairs["size"], pairs.index.to_frame())
    return Estimate(
        f"coverage of {NAMES[name]}, {LEFT_OUT[situation]} left out",
        f"{percent(level)} intervals of {NAMES[name]}, with {LEFT_OUT[situation]} left out, contain {{}} of the "
        "measured values",
        *share,
        unit="fraction",
        n=len(pairs),
        n_regions=n_regions,
        method=f"{HOW[situation]}; interval by leaving out regions (dyadic jackknife)",
        assumption="The measured pairs represent those to be predicted",
        level=0.95,
        warnings=notes,
    )


def share_interval(hits, tries, ends: pd.DataFrame) -> tuple[float, float, float, int]:
    """
    Return the share of successes over unordered pairs, its 95 % interval (jackknife over regions), and the number of
    regions.

    At 0 and 1 the jackknife has no width, so the interval is Clopper and Pearson's with the number of regions as n.
    """
    hits, tries = np.asarray(hits, dtype=float), np.asarray(tries, dtype=float)
    codes, regions = pd.factorize(ends.to_numpy().ravel(), sort=True)
    n_regions = len(regions)
    if n_regions < FEWEST_FOR_INTERVAL:
        return float(hits.sum() / tries.sum()), nan, nan, n_regions
    share, half = dyadic.ratio(hits, tries, *codes.reshape(-1, 2).T, n_regions, 0.95)
    if share in (0.0, 1.0):
        return share, *exact_binomial(int(share) * n_regions, n_regions, 0.95), n_regions
    return float(share), float(max(share - half, 0.0)), float(min(share + half, 1.0)), n_regions
