"""Fit one model of TCP throughput to pairs, with intervals for its parameters."""

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
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.dyadic import touches
from wanbench.methods.regions.line import ASSUMPTION, REFERENCES
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, require_regions, unordered_numbers
from wanbench.methods.regions.places import units
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile
from wanbench.methods.tcp.models import Paths, throughput_models
from wanbench.methods.tcp.window_fit import add_curve, pairs_with_both, rtt_and_throughput

from . import robust_fit

NAMES = {"W": "window W", "C": "capacity C", "p": "loss rate p"}
METHOD = (
    "Huber's loss on log throughput; interval from the dyadic-robust variance of the logarithm, leave-one-region-out "
    f"form ({REFERENCES})"
)


@dataclass(frozen=True, repr=False)
class ModelFit(Result):
    """
    One model of TCP throughput, fitted to pairs.

    model, formula: The model's name, and its formula in short.
    parameters: The fitted parameters by symbol: "W" (window), "C" (capacity), "p" (loss).
    pairs: The ordered pairs with RTT and throughput, and the columns model_bps and ratio (measured over model).
    """

    TITLE = "Fitted parameters of a TCP model"

    model: str
    formula: str
    parameters: dict[str, Estimate]
    pairs: pd.DataFrame

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)

    def figure(self) -> go.Figure:
        """Draw throughput against RTT of every pair, with the model's curve."""
        frame = self.pairs
        figure = go.Figure()
        rtt_and_throughput(figure, frame, frame.model_bps)
        curve = frame.sort_values("rtt_ms")
        add_curve(figure, curve.rtt_ms, curve.model_bps, self.model)
        parameters = "; ".join(f"{estimate.quantity} {estimate.with_ends}" for estimate in self.estimates)
        return theme.finish(
            figure,
            name=f"model-{re.sub('[^a-z0-9]+', '-', self.model.lower())}",
            title=theme.headline(self.sentence, f"Throughput against round-trip time: {self.model}"),
            subtitle=f"{self.formula}. Both axes: logarithmic. {parameters}.",
            alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {self}",
            caption=self.sentence,
            table=frame,
        )


def fit_model(pairs: pd.DataFrame, model: str, *, transfer_s: float | None = None) -> ModelFit:
    """
    Fit the model of `throughput_models` with the name `model` to ordered pairs, with an interval for each parameter.

    An interval states how much the parameter may differ if other regions are measured, assuming that the model also
    holds for them. The model "finite transfer" needs `transfer_s`, the duration of each test.

    Raises ParameterError: the model is unknown, it has a parameter without a unit, or there are fewer than 5 regions or
        places (clusters of near regions).
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
            f"{NAMES[symbol]} ({model})",
            f"The {NAMES[symbol]} of the model “{model}” is {{}}",
            *(exp(best[k]), exp(best[k] - half[k]), exp(best[k] + half[k])),
            unit=unit,
            **sample.counted(places.n),
            method=f"{METHOD}; {chosen.formula}",
            assumption=f"The model holds with the same parameters for all pairs. {ASSUMPTION}",
            naive=Interval(PAIRS_INDEPENDENT, exp(best[k] - naive[k]), exp(best[k] + naive[k])),
            warnings=sample.warnings(),
        )
        for k, (symbol, unit) in enumerate(chosen.parameters)
    }
    model_bps = np.exp(chosen.curve(best[None], paths)[0])
    table = frame.assign(model_bps=model_bps, ratio=frame.throughput_bps / model_bps)
    return ModelFit(model, chosen.formula, parameters, table)
