"""The numbers of one model of throughput, with intervals by place."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ..regions import dyadic
from ..regions.clusters import PLACE, units
from ..regions.line import ASSUMPTION, REFERENCES
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL, require_regions
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from . import curve_fit as fitting
from .curves import Form, Paths, forms
from .measured_pairs import with_both

NAMES = {"W": "window W", "C": "capacity C", "p": "loss rate p"}
METHOD = (
    "Huber's loss on log throughput; interval from the dyadic-robust variance of the logarithm, leave-one-region-out "
    f"form ({REFERENCES})"
)


@dataclass(frozen=True, repr=False)
class ModelFit(Result):
    """
    One model: `numbers` maps each of its symbols ("W", "C", "p") to an Estimate; `pairs` has measured, model and ratio.
    """

    model: str
    says: str
    numbers: dict[str, Estimate]
    pairs: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.numbers.values())

    DRAWN_BY = "model_figure.model_curve"

    def __str__(self) -> str:
        return " ".join(map(str, self.estimates))

    def _repr_html_(self) -> str:
        return html(self.estimates, f"{self.model}: {self.says}")


def fit_model(
    pairs: pd.DataFrame,
    model: str,
    *,
    transfer_bytes: float | None = None,
    transfer_s: float | None = None,
    ordered: bool = False,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
    level: float = 0.95,
    cluster=PLACE,
) -> ModelFit:
    """
    Fit one of the models of `compare_models` and say how well its numbers are known.

    The interval is for the number that this model would have in other regions; that the model itself is wrong, it does
    not count. `compare_models` says how well the model predicts.

    Parameters
    ----------
    model : str
        Its name in `compare_models`: "window-limited", "finite transfer" (needs `transfer_bytes` or `transfer_s`), ...
    cluster
        As for `fit_rtt`.
    Other parameters as in `compare_models`.

    Raises
    ------
    ParameterError
        An unknown model, or one without numbers that have a unit; fewer than 5 regions.
    """
    level = check_level(level)
    known = {each.name: each for each in forms(transfer_bytes=transfer_bytes, transfer_s=transfer_s)}
    if model not in known or not any(unit for _, unit in known[model].parameters):
        fine = [name for name, form in known.items() if all(unit for _, unit in form.parameters)]
        raise ParameterError(f"model={model!r}: allowed here are {', '.join(fine)}")
    form: Form = known[model]
    sample = with_both(pairs, rtt_column, throughput_column, ordered)
    require_regions(sample, FEWEST_FOR_INTERVAL, "a model's interval")
    frame = sample.frame
    paths = Paths(frame.rtt_ms.to_numpy(), frame.distance_km.to_numpy())
    y = np.log(frame.throughput_bps.to_numpy())
    best, scale = fitting.fit(form, paths, y)
    grouped = units(sample, cluster)
    if grouped.n < FEWEST_FOR_INTERVAL:
        raise ParameterError(f"a model's interval needs {FEWEST_FOR_INTERVAL} places; there are {grouped.n}")
    ends = np.sort(np.column_stack([grouped.first, grouped.second]), axis=1)
    region = np.arange(grouped.n)[:, None]
    kept = ((ends[:, 0] != region) & (ends[:, 1] != region)).astype(float)
    without, _ = fitting.refit(form, paths, y, kept, np.broadcast_to(best, (len(kept), len(best))), scale)
    codes = np.unique(ends, axis=0, return_inverse=True)[1].ravel()
    single = 1.0 - (codes[None, :] == np.arange(codes.max() + 1)[:, None])
    alone, _ = fitting.refit(form, paths, y, single, np.broadcast_to(best, (len(single), len(best))), scale)
    half = stats.t.ppf((1 + level) / 2, grouped.n - 1) * np.sqrt(dyadic.variance(without, alone))
    naive = stats.t.ppf((1 + level) / 2, len(single) - 1) * np.sqrt(dyadic.jackknife(alone))
    numbers = {}
    for k, (symbol, unit) in enumerate(form.parameters):
        numbers[symbol] = Estimate(
            quantity=f"{NAMES[symbol]} ({model})",
            claim=f"The {NAMES[symbol]} that {model} needs is {{}}",
            estimate=exp(best[k]),
            low=exp(best[k] - half[k]),
            high=exp(best[k] + half[k]),
            unit=unit,
            n=len({frozenset(pair) for pair in zip(sample.first, sample.second, strict=True)}),
            n_regions=sample.n_regions,
            n_places=grouped.n,
            method=f"{METHOD}; {form.says}",
            assumption=f"The model holds, with the same numbers for all. {ASSUMPTION}",
            level=level,
            naive=Interval(PAIRS_INDEPENDENT, exp(best[k] - naive[k]), exp(best[k] + naive[k])),
            warnings=sample.warnings(),
        )
    model_bps = np.exp(form.curve(best[None], paths)[0])
    return ModelFit(
        model, form.says, numbers, frame.assign(model_bps=model_bps, ratio=frame.throughput_bps / model_bps)
    )
