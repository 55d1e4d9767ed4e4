"""Which model of throughput predicts regions it has not seen: fits, scores and ties."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import log

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, percent, span
from ..regions.line import ASSUMPTION, REFERENCES
from ..regions.unordered_pairs import require_regions
from ..result import Estimate, Result
from .curves import YARDSTICK, Paths, forms
from .finite import INITIAL_SEGMENTS
from .left_out import predict
from .mathis import MSS_BYTES
from .measured_pairs import ENDS, with_both
from .scores import scores

FEWEST_REGIONS = 5
BY = {"to_cloud": "receiving cloud", "from_cloud": "sending cloud", "cloud_pair": "pair of clouds"}
FACTOR, ROBUST_Z = 2.0, 3.0
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
        One row per model, the best first: model, formula, fitted (its numbers), n_numbers, error_factor (the
        exponential of the mean absolute log error on left-out regions: 1.5 is half as much again or a third less) with
        low and high, median_factor with median_low and median_high (region bootstrap), in_sample_factor,
        in_sample_median_factor, worse_by (its error over that of the best, a factor) with worse_low and worse_high,
        verdict ("best", "not told apart from the best", "worse"), same_curve_as.
    pairs : DataFrame
        Per unordered pair (or ordered: see `compare_models`): region_a, region_b, cloud_pair, distance_km, rtt_ms,
        throughput_bps, and per model "<model>: ratio", measured over predicted by the fits that left out either of
        its regions.
    unexplained : DataFrame
        The pairs that none of the models explains, with `closest_ratio`, the ratio nearest to 1 that any model but
        the constant reaches; `rule` says when a pair is one.
    left_out : DataFrame
        Rows not in use, with their reason.
    notes : tuple of str
        What was not fitted and why; what a reader must know.
    """

    scores: pd.DataFrame
    pairs: pd.DataFrame
    unexplained: pd.DataFrame
    left_out: pd.DataFrame
    rule: str
    n_regions: int
    level: float
    notes: tuple[str, ...] = ()

    @property
    def n_pairs(self) -> int:
        """Unordered pairs in use."""
        return len({frozenset(ends) for ends in zip(self.pairs.region_a, self.pairs.region_b, strict=True)})

    @property
    def counted(self) -> str:
        """The rows of `pairs` in words, such as "66 pairs" or, with two directions, "132 ordered pairs"."""
        word = "ordered pair" if (self.pairs.region_a > self.pairs.region_b).any() else "pair"
        return count(len(self.pairs), word)

    @property
    def best(self) -> str:
        """The model with the least error on left-out regions."""
        return self.scores.model.iloc[0]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The error on left-out regions of each model, as a factor."""
        return tuple(
            Estimate(
                quantity=f"error of {row.model} on left-out regions",
                claim=f"On regions it has not seen, {row.model} errs by a factor of {{}} (mean absolute log error)",
                estimate=row.error_factor,
                low=row.low,
                high=row.high,
                unit="",
                n=self.n_pairs,
                n_regions=self.n_regions,
                method=METHOD,
                assumption=ASSUMPTION,
                level=self.level,
                warnings=self.notes,
            )
            for row in self.scores.itertuples(index=False)
        )

    def table(self) -> pd.DataFrame:
        """The scores: one row per model."""
        return self.scores

    @property
    def sentence(self) -> str:
        """What came out, in words, without the notes."""
        best = self.scores.iloc[0]
        ends = span(best.low, best.high, 2)
        said = (
            f"On left-out regions {best.model} predicts throughput best, to a factor of {best.error_factor:.2f} "
            f"({percent(self.level)} interval by region {ends or 'none'}; in sample {best.in_sample_factor:.2f}; "
            f"{self.counted} of {count(self.n_regions, 'region')})"
        )
        rest = self.scores.iloc[1:]
        tied, worse = rest[rest.verdict != "worse"], rest[rest.verdict == "worse"]
        same = tied[[best.model in names.split(", ") for names in tied.same_curve_as]]
        other = tied.drop(same.index)
        if len(same):
            said += f"; {_listed(same.model)} {_verb(same, 'is', 'are')} the same curve"
        if len(other):
            said += f"; {_listed(other.model)} cannot be told apart from it"
        if len(worse):
            each = [f"{row.model} {row.error_factor:.2f}" for row in worse.itertuples()]
            said += f"; worse {_verb(worse, 'is', 'are')} {_listed(each)}"
        return said + "."

    def __str__(self) -> str:
        n = len(self.unexplained)
        none = f"{n:,} of {self.counted} {'is' if n == 1 else 'are'} explained by none of them"
        return " ".join(
            [self.sentence, f"{none} ({self.rule}).", *(f"Caution: {each}." for each in self.notes)]
        )

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding that says which model predicts left-out regions best."""
        best = self.scores.iloc[0]
        return Finding(
            name=name,
            sentence=self.sentence,
            estimate=best.error_factor,
            low=best.low,
            high=best.high,
            unit="times",
            n=self.n_pairs,
            n_regions=self.n_regions,
            method=METHOD,
            assumption=ASSUMPTION,
            page=page,
        )

    def _repr_html_(self) -> str:
        names = ["Model", "Fitted", "Error on left-out regions", "Interval", "Median", "In sample", "Verdict"]
        rows = [
            [
                row.model,
                row.fitted,
                f"x {row.error_factor:.2f}",
                span(row.low, row.high, 2) or "none",
                f"x {row.median_factor:.2f}",
                f"x {row.in_sample_factor:.2f}",
                row.verdict,
            ]
            for row in self.scores.itertuples(index=False)
        ]
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return (
            f"<p>{escape(str(self))}</p><table class='estimates'><caption>Models of throughput</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    DRAWN_BY = "compare_models_figure.model_scores"

    def map(self, regions: pd.DataFrame, *, note: str = ""):
        """The pairs that none of the models explains, on a map; `regions` is the table of this name."""
        return self.drawn_by("compare_models_figure.unexplained_map", regions, note=note)


def compare_models(
    pairs: pd.DataFrame,
    *,
    transfer_bytes: float | None = None,
    transfer_s: float | None = None,
    ordered: bool = False,
    by: str | None = None,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
    mss_bytes: float = MSS_BYTES,
    initial_segments: float = INITIAL_SEGMENTS,
    ceiling: bool = True,
    factor: float = FACTOR,
    robust_z: float = ROBUST_Z,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> ModelComparison:
    """
    Fit the models of throughput and score them by predictions of left-out regions.

    One region after the other is left out: each model is fitted to the pairs that do not touch it, and predicts those
    that do. So each pair is predicted twice, without either of its regions; its error is the mean of both absolute log
    errors. Whether two models differ is told by the differences of their errors pair by pair, whose interval counts
    regions; at this level one of twenty equal models is called worse by chance, more where many are compared.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    transfer_bytes, transfer_s : float, optional
        What each test sent, or how long; one is needed for the finite transfer.
    ordered : bool
        Take the two directions of a pair as two rows rather than their geometric mean.
    by : str, optional
        "to_cloud", "from_cloud" (both if ordered) or "cloud_pair": give every model numbers of its own per such group.
        A receiver's window is that of its cloud, so the two directions of a pair of clouds can differ for good.
    mss_bytes, initial_segments : float
        Payload of a segment, and the first flight of slow start.
    ceiling : bool
        Cut TCP's models off at a fitted capacity.
    factor, robust_z : float
        A pair is unexplained if every model but the constant misses it by more than this factor, on the same side, and
        by more than this many robust standard deviations of that model's residuals (1.4826 MAD).
    resamples, seed : int
        Of the bootstrap over regions, for the medians.

    Raises
    ------
    ParameterError
        With fewer than 5 regions, or where a region less leaves too few pairs for three numbers.
    """
    level = check_level(level)
    if not (factor > 1 and robust_z >= 0):
        raise ParameterError(f"factor={factor!r} must be above 1, robust_z={robust_z!r} at least 0")
    chosen = forms(
        transfer_bytes=transfer_bytes,
        transfer_s=transfer_s,
        mss_bytes=mss_bytes,
        initial_segments=initial_segments,
        ceiling=ceiling,
    )
    sample = with_both(pairs, rtt_column, throughput_column, ordered)
    require_regions(sample, FEWEST_REGIONS, "a comparison on left-out regions")
    frame, names = sample.frame, [form.name for form in chosen]
    paths = Paths(frame.rtt_ms.to_numpy(), frame.distance_km.to_numpy())
    y = np.log(frame.throughput_bps.to_numpy())
    found = predict(chosen, sample, paths, y, _groups(frame, by, ordered))
    table = scores(found, sample, level, resamples, seed)
    for each in found:
        frame[f"{each.name}: ratio"] = np.exp(each.outside)
    outside = np.array([each.outside for each in found])
    unexplained = _unexplained(frame, names, outside, log(factor), robust_z)
    rule = (
        f"every model but the {YARDSTICK} misses it, when either of its regions is left out, on the same side by more "
        f"than a factor of {factor:g} and {robust_z:g} robust standard deviations"
    )
    notes = sample.warnings()
    if "finite transfer" not in names:
        notes += ("the finite transfer was not fitted: neither transfer_bytes nor transfer_s was given",)
    if by is not None:
        notes += (f"each model has numbers of its own per {BY[by]}",)
    return ModelComparison(table, frame, unexplained, sample.left_out, rule, sample.n_regions, level, notes)


def _groups(frame: pd.DataFrame, by: str | None, ordered: bool) -> np.ndarray:
    """The label of each pair under which it is fitted."""
    if by is None:
        return np.full(len(frame), "all")
    if by not in BY or (by != "cloud_pair" and not ordered):
        raise ParameterError(
            f"by={by!r}, ordered={ordered!r}: allowed are cloud_pair, and from_cloud and to_cloud if ordered"
        )
    if by == "cloud_pair":
        return frame.cloud_pair.to_numpy(dtype=object)
    ends = frame.region_a if by == "from_cloud" else frame.region_b
    return ends.str.partition(":")[0].to_numpy(dtype=object)


def _unexplained(frame, names, outside, least, robust_z) -> pd.DataFrame:
    models = [k for k, name in enumerate(names) if name != YARDSTICK]
    residual = outside[models]
    middle = np.median(residual, axis=1, keepdims=True)
    scale = 1.4826 * np.median(np.abs(residual - middle), axis=1, keepdims=True)
    bound = np.maximum(least, robust_z * scale)
    missed = (residual > bound).all(axis=0) | (residual < -bound).all(axis=0)
    closest = residual[np.abs(residual).argmin(axis=0), np.arange(residual.shape[1])]
    keep = [*ENDS, "cloud_pair", "distance_km", "rtt_ms", "throughput_bps"]
    found = frame[keep].assign(closest_ratio=np.exp(closest))[missed]
    return found.iloc[np.argsort(-np.abs(closest[missed]), kind="stable")].reset_index(drop=True)


def _listed(names) -> str:
    names = list(names)
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verb(rows, one: str, many: str) -> str:
    return one if len(rows) == 1 else many
