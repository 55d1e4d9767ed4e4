"""Compare models of throughput by their predictions of left-out regions: fits, scores and ties."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_level
from wanbench.formatting import count, decimals, number
from wanbench.methods.regions.line import ASSUMPTION, REFERENCES
from wanbench.methods.regions.unordered_pairs import require_regions
from wanbench.methods.result import Estimate, Result
from wanbench.methods.tcp.cross_validation import cross_validate
from wanbench.methods.tcp.models import CONSTANT, Paths, throughput_models
from wanbench.methods.tcp.pairs_with_both import COLUMNS, pairs_with_both
from wanbench.methods.tcp.robust_fit import MAD_TO_SD

from .scores import WORSE, scores

MIN_REGIONS = 5
"""With fewer, the interval over left-out regions has hardly any degrees of freedom."""
BY = {"to_cloud": "receiving cloud", "from_cloud": "sending cloud", "cloud_pair": "pair of clouds"}
FACTOR = 2.0
"""
A pair is unexplained only if every model misses it by more than this factor: a smaller one is ordinary noise of a test.
"""
ROBUST_Z = 3.0
"""
A pair is unexplained only if it also lies beyond this many robust standard deviations of each model's residuals: 3 in
1,000 if they were normal.
"""
RULE = (
    f"every model but the {CONSTANT} misses it, when either of its regions is left out, on the same side by more "
    f"than a factor of {FACTOR:g} and {ROBUST_Z:g} robust standard deviations"
)
METHOD = (
    "Huber's loss on log throughput; every pair of a region predicted by the fit to all pairs without that region; "
    f"interval from the dyadic-robust variance of the errors, leave-one-region-out form ({REFERENCES})"
)


@dataclass(frozen=True, repr=False)
class ModelComparison(Result):
    """
    The models' scores on left-out regions.

    Attributes
    ----------
    scores : DataFrame
        One row per model, the best first: model, formula, fitted (its parameters), n_parameters, error_factor (the
        exponential of the mean absolute log error on left-out regions: 1.5 means 50 % more or a third less) with low
        and high, median_factor, in_sample_factor, worse_by (its error over that of the best, a factor) with worse_low
        and worse_high, verdict ("best", "not told apart from the best", "worse"), same_curve_as.
    pairs : DataFrame
        Per unordered pair (or ordered: see `compare_models`): region_a, region_b, cloud_pair, distance_km, rtt_ms,
        throughput_bps, and per model "<model>: ratio", measured over predicted by the fits that left out either of
        its regions.
    unexplained : DataFrame
        The pairs that no model explains (`RULE`), with `closest_ratio`, the ratio nearest to 1 that any model but the
        constant reaches.
    left_out : DataFrame
        Rows not in use, with their reason.
    notes : tuple of str
        Cautions: rows and models left out, groups fitted separately.
    """

    TITLE = "Models of throughput"
    DRAWN_BY = "compare_models_figure.model_scores"

    scores: pd.DataFrame
    pairs: pd.DataFrame
    unexplained: pd.DataFrame
    left_out: pd.DataFrame
    n_regions: int
    level: float
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """The rows of `pairs` as text, such as "66 pairs" or, with two directions, "132 ordered pairs"."""
        ordered = (self.pairs.region_a > self.pairs.region_b).any()
        return count(len(self.pairs), "ordered pair" if ordered else "pair")

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The error of each model on left-out regions, as a factor, the best first."""
        ends = zip(self.pairs.region_a, self.pairs.region_b, strict=True)
        n_pairs = len({frozenset(each) for each in ends})
        return tuple(
            Estimate(
                quantity=f"error of {row.model} on left-out regions",
                claim=f"On regions it has not seen, {row.model} errs by a factor of {{}} (mean absolute log error)",
                estimate=row.error_factor,
                low=row.low,
                high=row.high,
                unit="",
                n=n_pairs,
                n_regions=self.n_regions,
                method=METHOD,
                assumption=ASSUMPTION,
                level=self.level,
                warnings=self.notes,
            )
            for row in self.scores.itertuples(index=False)
        )

    @property
    def sentence(self) -> str:
        best, *others = self.estimates
        row, rest = self.scores.iloc[0], self.scores.iloc[1:]
        interval = f"{best.formatted_level} interval by region {best.formatted_interval or 'none'}"
        parts = [
            f"On left-out regions {row.model} predicts throughput best, to a factor of {best.formatted} "
            f"({interval}; in sample {_like(best, row.in_sample_factor)}; "
            f"{self.counted} of {count(self.n_regions, 'region')})"
        ]
        worse = rest.verdict == WORSE
        same = ~worse & rest.same_curve_as.str.split(", ").map(lambda names: row.model in names)
        if same.any():
            parts.append(f"{_listed(rest.model[same])} {'is' if same.sum() == 1 else 'are'} the same curve")
        if (~worse & ~same).any():
            parts.append(f"{_listed(rest.model[~worse & ~same])} do not differ significantly from it")
        if worse.any():
            factors, named = [], set()
            for model, alike, bad, each in zip(rest.model, rest.same_curve_as, worse, others, strict=True):
                if bad and model not in named:
                    named |= set(alike.split(", "))
                    factors.append(f"{model} {each.formatted}" + (f" (the same curve: {alike})" if alike else ""))
            parts.append(f"worse {'is' if worse.sum() == 1 else 'are'} {_listed(factors)}")
        n = len(self.unexplained)
        are = "is" if n == 1 else "are"
        return f"{'; '.join(parts)}. {n:,} of the {self.counted} {are} explained by no model."

    def table(self) -> pd.DataFrame:
        """The scores: one row per model."""
        return self.scores

    def formatted_table(self) -> pd.DataFrame:
        rows = [
            {
                "Model": row.model,
                "Fitted": row.fitted,
                "Error on left-out regions": f"x {estimate.formatted}",
                f"{estimate.formatted_level} interval": estimate.formatted_interval,
                "Median": f"x {_like(estimate, row.median_factor)}",
                "In sample": f"x {_like(estimate, row.in_sample_factor)}",
                "Verdict": row.verdict,
            }
            for row, estimate in zip(self.scores.itertuples(index=False), self.estimates, strict=True)
        ]
        return pd.DataFrame(rows)

    def map(self, regions: pd.DataFrame, *, note: str = ""):
        """The pairs that no model explains, on a map; `regions` is table regions."""
        return self.drawn_by("compare_models_figure.unexplained_map", regions, note=note)


def compare_models(
    pairs: pd.DataFrame,
    *,
    transfer_bytes: float | None = None,
    transfer_s: float | None = None,
    ordered: bool = False,
    by: str | None = None,
    level: float = 0.95,
) -> ModelComparison:
    """
    Fit the models of throughput and score them by predictions of left-out regions.

    Each region is left out in turn: a model fitted to the other pairs predicts those of that region. So each pair is
    predicted twice; its error is the mean of both absolute log errors. Two models are compared by the differences of
    their errors per pair, with an interval by region. At the 95 % level one in twenty equally good models is called
    worse by chance.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`, with `rtt_ms` and `throughput_bps`.
    transfer_bytes, transfer_s : float, optional
        Bytes that each test sent, or its duration; one of them is needed for the finite transfer.
    ordered : bool
        Take the two directions of a pair as two rows rather than their geometric mean.
    by : str, optional
        "to_cloud", "from_cloud" (both if ordered) or "cloud_pair": fit every model to each such group separately.
        The window depends on the receiver's cloud, so the two directions of a pair of clouds can differ permanently.

    Raises
    ------
    ParameterError
        With fewer than 5 regions, or if a group has too few pairs for three parameters when one region is left out.
    """
    level = check_level(level)
    models = throughput_models(transfer_bytes=transfer_bytes, transfer_s=transfer_s)
    name, allowed = ("by", BY) if ordered else ("by (without ordered=True)", ["cloud_pair"])
    check_choice(name, by, allowed, optional=True)
    sample = pairs_with_both(pairs, ordered=ordered)
    require_regions(sample, MIN_REGIONS, "a comparison on left-out regions")
    frame, names = sample.frame, [model.name for model in models]
    paths = Paths(frame.rtt_ms.to_numpy(), frame.distance_km.to_numpy())
    y = np.log(frame.throughput_bps.to_numpy())
    predictions = cross_validate(models, sample, paths, y, _groups(frame, by))
    table = scores(predictions, sample, level)
    for each in predictions:
        frame[f"{each.name}: ratio"] = np.exp(each.left_out)
    residual = np.array([each.left_out for each in predictions if each.name != CONSTANT])
    notes = sample.warnings()
    if "finite transfer" not in names:
        notes += ("the finite transfer was not fitted: neither transfer_bytes nor transfer_s was given",)
    if by is not None:
        notes += (f"each model is fitted separately per {BY[by]}",)
    unexplained = _unexplained(frame, residual)
    return ModelComparison(table, frame, unexplained, sample.left_out, sample.n_regions, level, notes)


def _groups(frame: pd.DataFrame, by: str | None) -> np.ndarray:
    """The group of each pair, by its label: every group is fitted separately."""
    if by is None:
        return np.full(len(frame), "all")
    if by == "cloud_pair":
        return frame.cloud_pair.to_numpy(dtype=object)
    ends = frame.region_a if by == "from_cloud" else frame.region_b
    return ends.str.partition(":")[0].to_numpy(dtype=object)


def _unexplained(frame: pd.DataFrame, residual: np.ndarray) -> pd.DataFrame:
    """The pairs that every model misses (`RULE`), the farthest first; residuals on left-out regions (models, pairs)."""
    middle = np.median(residual, axis=1, keepdims=True)
    scale = MAD_TO_SD * np.median(np.abs(residual - middle), axis=1, keepdims=True)
    bound = np.maximum(log(FACTOR), ROBUST_Z * scale)
    missed = (residual > bound).all(axis=0) | (residual < -bound).all(axis=0)
    closest = residual[np.abs(residual).argmin(axis=0), np.arange(residual.shape[1])]
    found = frame[COLUMNS].assign(closest_ratio=np.exp(closest))[missed]
    return found.iloc[np.argsort(-np.abs(closest[missed]), kind="stable")].reset_index(drop=True)


def _like(estimate: Estimate, value: float) -> str:
    """A number with as many decimals as the estimate."""
    return number(value, decimals(estimate.estimate, estimate.low, estimate.high))


def _listed(names) -> str:
    *first, last = names
    return " and ".join(filter(None, [", ".join(first), last]))
