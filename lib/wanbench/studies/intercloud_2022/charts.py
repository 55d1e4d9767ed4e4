"""RTT and throughput on distance for all pairs and for each ordered pair of clouds: five charts for two clouds."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import pandas as pd

from ...errors import ParameterError
from ...formatting import percent
from ...stats.distance.fits import RttFit, ThroughputFit, fit_rtt, fit_throughput
from ...stats.result import Estimate, Result
from ...stats.tcp import ModelFit, fit_model

ALL = "all"


@dataclass(frozen=True, repr=False)
class Chart(Result):
    """
    One chart: its pairs (table `pairs`), the two lines through them, and TCP's window.

    `model` is None where there are too few regions, and for all pairs together, which have several windows.
    """

    name: str
    pairs: pd.DataFrame
    rtt: RttFit
    throughput: ThroughputFit
    model: ModelFit | None

    DRAWN_BY = "charts_figure.distance_chart"

    def __str__(self) -> str:
        return f"{self.rtt.pearson} {self.throughput.pearson}"


@dataclass(frozen=True, repr=False)
class Charts(Result):
    """`charts` maps "all" and each ordered pair of clouds ("aws->gcp") to its Chart; `left_out` says why not others."""

    charts: dict[str, Chart]
    left_out: dict[str, str]
    level: float = 0.95

    def __getitem__(self, name: str) -> Chart:
        try:
            return self.charts[name]
        except KeyError:
            why = f" ({self.left_out[name]})" if name in self.left_out else ""
            raise ParameterError(f"no chart {name!r}{why}; there are {', '.join(self.charts)}") from None

    def table(self) -> pd.DataFrame:
        """One row per quantity, one column per chart: the value and its interval, in words."""
        columns = {}
        for name, chart in self.charts.items():
            slope = chart.rtt.slope
            columns[name] = {
                "pairs, regions": f"{slope.n:,}, {slope.n_regions}",
                "RTT against distance, r": _cell(chart.rtt.pearson),
                "RTT slope": _cell(slope),
                "log throughput against distance, r": _cell(chart.throughput.pearson),
                "half-distance": _cell(chart.throughput.half_distance),
                **_numbers(chart.model),
            }
        head = f"value ({percent(self.level)} interval by place)"
        return pd.DataFrame(columns).rename_axis(head).reset_index()

    def __str__(self) -> str:
        return "\n".join(f"{name}: {chart}" for name, chart in self.charts.items())

    def _repr_html_(self) -> str:
        return self.table().to_html(index=False, border=0)


def charts(
    pairs: pd.DataFrame,
    *,
    level: float = 0.95,
    resamples: int = 4_000,
    seed: int = 0,
    clouds: tuple[str, ...] = (),
    transfer_s: float | None = None,
) -> Charts:
    """
    Fit both lines to all pairs, and to the pairs of each ordered pair of clouds; to the latter TCP's window as well.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    clouds : sequence of str
        Only these ordered pairs of clouds ("aws->gcp"); by default all there are.
    transfer_s : float, optional
        How long each transfer lasted: then slow start is part of the model (finite transfer), else only the window.
    """
    groups = {ALL: pairs}
    joined = pairs.from_cloud + "->" + pairs.to_cloud
    for name in clouds or sorted(joined.unique()):
        groups[name] = pairs[joined == name]
    found, left_out = {}, {}
    for name, part in groups.items():
        try:
            found[name] = Chart(
                name,
                part,
                fit_rtt(part, level=level, resamples=resamples, seed=seed),
                fit_throughput(part, level=level, resamples=resamples, seed=seed),
                None if name == ALL else _model(part, transfer_s, level),
            )
        except ParameterError as error:
            if name == ALL:
                raise
            left_out[name] = str(error)
    return Charts(found, left_out, level)


def _model(pairs: pd.DataFrame, transfer_s: float | None, level: float) -> ModelFit | None:
    model = "window-limited" if transfer_s is None else "finite transfer"
    try:
        return fit_model(pairs, model, transfer_s=transfer_s, ordered=True, level=level)
    except ParameterError:
        return None


def _numbers(model: ModelFit | None) -> dict[str, str]:
    names = {"W": "TCP window W", "C": "capacity C"}
    return {label: _cell(model.parameters[symbol]) if model else "" for symbol, label in names.items()}


def _cell(part: Estimate) -> str:
    if isnan(part.estimate):
        return "not identified"
    return f"{part.written} ({part.written_interval})" if part.written_interval else part.written
