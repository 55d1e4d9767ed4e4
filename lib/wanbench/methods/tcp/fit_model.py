"""The parameters of one model of throughput, with intervals by place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import exp

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.distance.pair_points import add_points
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.dyadic import touches
from wanbench.methods.regions.line import ASSUMPTION, REFERENCES
from wanbench.methods.regions.pairs import (
    FEWEST_FOR_INTERVAL,
    Sample,
    left_out_of_any,
    require_regions,
    unordered,
    unordered_numbers,
)
from wanbench.methods.regions.places import units
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile

from . import robust_fit
from .models import Paths, throughput_models

ENDS = ["region_a", "region_b"]
COLUMNS = [*ENDS, "cloud_pair", "distance_km", "rtt_ms", "throughput_bps"]
NAMES = {"W": "window W", "C": "capacity C", "p": "loss rate p"}
METHOD = (
    "Huber's loss on log throughput; interval from the dyadic-robust variance of the logarithm, leave-one-region-out "
    f"form ({REFERENCES})"
)


def pairs_with_both(pairs: pd.DataFrame, *, ordered: bool = False) -> Sample:
    """
    Pairs with `rtt_ms` and `throughput_bps`, columns as `COLUMNS`.

    The RTT is the median of both directions; the throughput is their geometric mean, or, with `ordered`, one row per
    direction, with region_a the sender.
    """
    rtt = unordered(pairs, "rtt_ms")
    throughput = unordered(pairs, "throughput_bps", combine="geometric mean")
    left_out = left_out_of_any(rtt, throughput)
    frame = throughput.frame
    if ordered:
        # One direction at a time, so that `unordered` combines only repeated rows of that direction.
        ascends = pairs.from_region < pairs.to_region
        directions = [
            unordered(part, "throughput_bps", combine="geometric mean").frame.assign(reverse=reverse)
            for part, reverse in ((pairs[ascends], False), (pairs[~ascends], True))
        ]
        frame = pd.concat(directions, ignore_index=True)
    rtts = rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"})
    frame = frame.rename(columns={"value": "throughput_bps"}).merge(rtts, on=ENDS)
    if ordered:
        reverse = frame.reverse.to_numpy(dtype=bool)[:, None]
        frame[ENDS] = np.where(reverse, frame[ENDS[::-1]].to_numpy(), frame[ENDS].to_numpy())
    return Sample("rtt_ms and throughput_bps", frame[COLUMNS], left_out)


@dataclass(frozen=True, repr=False)
class ModelFit(Result):
    """
    One fitted model.

    model, formula: Its name and a short form of its formula.
    parameters: By symbol: "W", "C", "p".
    pairs: As `pairs_with_both.COLUMNS`, with model_bps and ratio (measured over model).
    """

    TITLE = "Fitted parameters of a TCP model"

    model: str
    formula: str
    parameters: dict[str, Estimate]
    pairs: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.parameters.values())

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)

    def figure(self, *, note: str = "") -> go.Figure:
        """Draw every pair of a fit, and the model's throughput at their RTTs."""
        frame = self.pairs
        figure = go.Figure()
        rtt_and_throughput(figure, frame, frame.model_bps)
        curve = frame.sort_values("rtt_ms")
        add_curve(figure, curve.rtt_ms, curve.model_bps, self.model)
        parameters = "; ".join(
            f"{estimate.quantity} {estimate.formatted} ({estimate.formatted_interval})" for estimate in self.estimates
        )
        return theme.finish(
            figure,
            name=f"model-{re.sub('[^a-z0-9]+', '-', self.model.lower())}",
            title=f"Throughput against round-trip time: {self.model}",
            subtitle=f"{self.formula}. Both axes: logarithmic. {parameters}.",
            alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {self}",
            caption=self.sentence,
            table=frame,
            note=note,
        )


def fit_model(pairs: pd.DataFrame, model: str, *, transfer_s: float | None = None) -> ModelFit:
    """
    Fit one of the models of `throughput_models`, by name, to ordered pairs, with an interval for each of its
    parameters.

    The interval says how much the parameter may differ in other regions if the model holds. "finite transfer" needs
    `transfer_s`, the duration of each test.

    Raises ParameterError: an unknown model, or one whose parameters have no unit; fewer than 5 regions or places.
    """
    models = throughput_models(transfer_s)
    by_name = {candidate.name: candidate for candidate in models if all(unit for _, unit in candidate.parameters)}
    chosen = by_name[check_choice("model", model, by_name)]
    sample = pairs_with_both(pairs, ordered=True)
    require_regions(sample, FEWEST_FOR_INTERVAL, "a model's interval")
    places = units(sample)
    if places.n < FEWEST_FOR_INTERVAL:
        raise ParameterError(f"a model's interval needs {FEWEST_FOR_INTERVAL} places; there are {places.n}")
    frame = sample.frame
    paths = Paths(frame.rtt_ms.to_numpy(), frame.distance_km.to_numpy())
    y = np.log(frame.throughput_bps.to_numpy())
    best, scale = robust_fit.fit(chosen, paths, y)

    def refit(kept: np.ndarray) -> np.ndarray:
        return robust_fit.refit(chosen, paths, y, kept.astype(float), best, scale)[0]

    without_place = refit(~touches(places.first, places.second, places.n))
    pair = unordered_numbers(places.first, places.second, places.n)
    without_pair = refit(pair != np.arange(pair.max() + 1)[:, None])
    half = t_quantile(LEVEL, places.n - 1) * np.sqrt(dyadic.variance(without_place, without_pair))
    naive = t_quantile(LEVEL, len(without_pair) - 1) * np.sqrt(dyadic.jackknife(without_pair))
    parameters = {
        symbol: Estimate(
            quantity=f"{NAMES[symbol]} ({model})",
            claim=f"The {NAMES[symbol]} that {model} needs is {{}}",
            estimate=exp(best[k]),
            low=exp(best[k] - half[k]),
            high=exp(best[k] + half[k]),
            unit=unit,
            n=len({frozenset(pair) for pair in zip(sample.first, sample.second, strict=True)}),
            n_regions=sample.n_regions,
            n_places=places.n,
            method=f"{METHOD}; {chosen.formula}",
            assumption=f"The model holds, with the same parameters for all pairs. {ASSUMPTION}",
            naive=Interval(PAIRS_INDEPENDENT, exp(best[k] - naive[k]), exp(best[k] + naive[k])),
            warnings=sample.warnings(),
        )
        for k, (symbol, unit) in enumerate(chosen.parameters)
    }
    model_bps = np.exp(chosen.curve(best[None], paths)[0])
    table = frame.assign(model_bps=model_bps, ratio=frame.throughput_bps / model_bps)
    return ModelFit(model, chosen.formula, parameters, table)


def rtt_and_throughput(figure: go.Figure, frame, model_bps) -> None:
    """Compute the points of throughput against RTT on log axes that also hold the model's throughput."""
    add_points(figure, frame, frame.rtt_ms, frame.throughput_bps, "%{x:.1f} ms<br>%{y:.3s}bit/s")
    shown = np.concatenate([frame.throughput_bps, model_bps])
    figure.update_xaxes(title="round-trip time (ms, log axis)", **theme.log_axis(frame.rtt_ms, ""))
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))


def add_curve(figure: go.Figure, rtt_ms, throughput_bps, name: str, style: dict | None = None) -> None:
    """Return a line without hover text, in the style of fits unless another is given."""
    line = style or {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(x=rtt_ms, y=throughput_bps, mode="lines", name=name, line=line, hoverinfo="skip")
