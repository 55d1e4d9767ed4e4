"""Count how often prediction intervals contain measured values that were left out of the fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_level, check_number
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, reference_line
from wanbench.formatting import count, percent, quantity
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
HEADROOM_PX = 24  # Height of the panel titles
COLOURS = {"rtt_ms": theme.WITHIN, "throughput_bps": theme.OUTSIDE}
LABELS = {"both": "pair left out", "one": "one region left out", "none": "both regions left out"}


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

    def table(self) -> pd.DataFrame:
        rows = []
        for (name, situation), estimate in self.coverage.items():
            part = self._part(name, situation)
            closed = np.isfinite(part.low) & np.isfinite(part.high)
            if name == "rtt_ms":
                width, error = part.high - part.low, (part.measured - part.predicted).abs()
            else:
                width = part.high / part.low
                error = np.exp(np.abs(np.log(part.measured / part.predicted)))
            rows.append(
                {
                    "measured": name,
                    "situation": situation,
                    **estimate.row(),
                    "n_predictions": len(part),
                    "median_width": float(width[closed].median()),
                    "width_unit": "ms" if name == "rtt_ms" else "times",
                    "median_error": float(error.median()),
                    "below": int((part.measured < part.low).sum()),
                    "above": int((part.measured > part.high).sum()),
                    "open": int((~closed).sum()),
                }
            )
        return pd.DataFrame(rows)

    def by_region(self, name: str = "rtt_ms") -> pd.DataFrame:
        """Return the coverage of each region's pairs when it is left out: region, n_pairs, coverage; lowest first."""
        groups = self._part(name, "one").groupby("region").covered
        rows = groups.agg(n_pairs="size", coverage="mean").reset_index()
        return rows.sort_values(["coverage", "region"], ignore_index=True)

    def _part(self, name: str, situation: str) -> pd.DataFrame:
        return self.left_out[(self.left_out.quantity == name) & (self.left_out.situation == situation)]

    def figure(self) -> go.Figure:
        """Draw the coverage of each quantity and situation, and of each left-out region, against the stated level."""
        titles = ["all left-out pairs", "each left-out region"]
        figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.1, subplot_titles=titles)
        labels = []
        for row, ((name, situation), share) in enumerate(self.coverage.items()):
            labels.append(f"{NAMES[name]}, {LABELS[situation]}<br>n = {count(share.n, 'pair')}")
            style = {"marker": {"size": 11, "color": COLOURS[name]}, "bar": {"thickness": 2.5}}
            estimate_points(figure, [row], [share], **style, showlegend=False, row=1, col=1)
        figure.update_yaxes(tickvals=list(range(len(labels))), ticktext=labels, autorange="reversed", row=1, col=1)
        by_region = _add_regions(figure, self)
        figure.update_xaxes(tickformat=".0%", title="share of measured values inside")
        lowest = min(0.6, *(share.estimate for share in self.estimates)) - 0.02
        figure.update_xaxes(range=[lowest, 1.02], row=1, col=1)
        reference_line(figure, x=self.level)
        shares = sorted(one.estimate for one in self.estimates)
        least, most = (quantity(share, "fraction") for share in (shares[0], shares[-1]))
        worst = ""
        if len(by_region):
            row = by_region.iloc[0]
            worst = f" Lowest coverage: {row.region} ({quantity(float(row.coverage), 'fraction')})."
        return theme.finish(
            figure,
            name="prediction-calibration",
            title=f"{percent(self.level)} prediction intervals hold {least} to {most} of left-out values",
            subtitle=f"Dashed: the stated level, {percent(self.level)}. Left, point: share of left-out values inside "
            "their intervals; bar: its 95 % interval, with regions as the units. Right: one point per left-out region.",
            alt=f"Coverage of prediction intervals on left-out values. {self.sentence}",
            caption="Pairs and regions were left out, predicted from the others, and compared with their measured "
            f"values.{worst}",
            table=self.table(),
            headroom_px=HEADROOM_PX,
        )


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


def _add_regions(figure: go.Figure, result: PredictionCoverage) -> pd.DataFrame:
    """Draw a row of regions per quantity in the right panel; return the first row's coverage by region."""
    frames = {name: result.by_region(name) for name, situation in result.coverage if situation == "one"}
    for row, (name, frame) in enumerate(frames.items()):
        figure.add_scatter(
            x=frame.coverage,
            y=row + theme.spread(len(frame)),
            mode="markers",
            marker={"size": 7, "opacity": 0.7, "color": COLOURS[name]},
            text=[theme.plain(region) for region in frame.region],
            hovertemplate="%{text}<br>%{x:.0%}<extra></extra>",
            showlegend=False,
            row=1,
            col=2,
        )
    ticks = {"tickvals": list(range(len(frames))), "ticktext": [NAMES[name] for name in frames]}
    figure.update_yaxes(**ticks, autorange="reversed", zeroline=False, row=1, col=2)
    return next(iter(frames.values()), pd.DataFrame())
