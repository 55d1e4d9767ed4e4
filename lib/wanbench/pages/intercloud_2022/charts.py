"""Fit RTT and throughput against distance, for all pairs and for each ordered pair of clouds."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from math import isnan

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import percent
from wanbench.methods.distance.pair_points import basis
from wanbench.methods.distance.straight_lines import RttFit, ThroughputFit, fit_rtt, fit_throughput
from wanbench.methods.result import LEVEL, Estimate, Result

from .fit_model import ModelFit, fit_model

ALL = "all"
PANELS = ("round-trip time (ms)", "throughput (bit/s, log axis)")


@dataclass(frozen=True, repr=False)
class Chart(Result):
    """
    RTT and throughput of some pairs against distance, with a fitted line for each, and the fitted TCP window.

    `model` is None for the chart of all pairs, which have several windows, and for a chart of too few regions.
    """

    TITLE = "RTT and throughput against distance"

    name: str
    pairs: pd.DataFrame
    rtt: RttFit
    throughput: ThroughputFit
    model: ModelFit | None

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        lines = (self.rtt.pearson, self.throughput.pearson, self.rtt.slope, self.throughput.half_distance)
        return lines + (self.model.estimates if self.model else ())

    @property
    def sentence(self) -> str:
        return f"{self.rtt.pearson.sentence} {self.throughput.pearson.sentence}"

    def figure(self) -> go.Figure:
        """Draw RTT and throughput of every unordered pair against distance, with fitted lines and intervals."""
        figure = make_subplots(rows=1, cols=2, subplot_titles=PANELS, horizontal_spacing=0.12)
        for column, panel in enumerate((self.rtt.figure(), self.throughput.figure()), start=1):
            for trace in panel.data:
                in_legend = column == 1 and trace.showlegend is not False
                figure.add_trace(trace.update(legendgroup=trace.name, showlegend=in_legend), row=1, col=column)
            figure.update_xaxes(panel.layout.xaxis.to_plotly_json(), row=1, col=column)
            figure.update_yaxes(panel.layout.yaxis.to_plotly_json() | {"title": None}, row=1, col=column)
        r, log_r = _cell(self.rtt.pearson), _cell(self.throughput.pearson)
        text = (
            f"RTT r = {r}; log throughput r = {log_r} ({percent(LEVEL)} intervals, with places as independent units)."
        )
        name = _title(self.name)
        found = f"r = {self.rtt.pearson.formatted} for RTT, {self.throughput.pearson.formatted} for log throughput"
        pairs, ends = basis(self.rtt.sample), ["region_a", "region_b"]
        throughput = self.throughput.sample.frame[[*ends, "value"]].rename(columns={"value": "throughput_bps"})
        both = self.rtt.sample.frame.rename(columns={"value": "rtt_ms"}).merge(throughput, on=ends, how="outer")
        return theme.finish(
            figure,
            name=f"distance-chart-{re.sub('[^a-z0-9]+', '-', self.name)}",
            title=theme.headline(f"{name}: {found}", found[:1].upper() + found[1:]),
            subtitle=f"One point per unordered pair. Lines: least squares; bands: intervals of the lines. {text}",
            alt=f"Two scatters against distance for {pairs}: RTT, and throughput on a log axis. {self}",
            caption=f"RTT and throughput of {pairs} ({name}) against the great-circle distance. {text}",
            table=both.drop(columns="n_directions"),
            headroom_px=24,
        )


def _title(name: str) -> str:
    return "all pairs" if name == ALL else " to ".join(map(theme.cloud_name, name.split("->")))


@dataclass(frozen=True, repr=False)
class Charts(Result):
    """
    The charts of all pairs ("all") and of each ordered pair of clouds ("aws->gcp").

    `left_out` maps the name of each chart that could not be made to the reason.
    """

    TITLE = "RTT and throughput against distance"

    charts: dict[str, Chart]
    left_out: dict[str, str]

    def __getitem__(self, name: str) -> Chart:
        try:
            return self.charts[name]
        except KeyError:
            why = f" ({self.left_out[name]})" if name in self.left_out else ""
            raise ParameterError(f"no chart {name!r}{why}; there are {', '.join(self.charts)}.") from None

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(estimate for chart in self.charts.values() for estimate in chart.estimates)

    @property
    def sentence(self) -> str:
        return f"All pairs: {self.charts[ALL].sentence}"

    @property
    def cautions(self) -> tuple[str, ...]:
        names: dict[str, list[str]] = {}
        for name, chart in self.charts.items():
            # What a caution says before its numbers, which differ from chart to chart.
            for kind in dict.fromkeys(caution.partition(" (")[0] for caution in chart.cautions):
                names.setdefault(kind, []).append(name)
        return (
            *(f"{kind} ({', '.join(map(_title, charts))})" for kind, charts in names.items()),
            *(f"no chart of {_title(name)}: {why}" for name, why in self.left_out.items()),
        )

    def formatted_table(self) -> pd.DataFrame:
        columns = {}
        for name, chart in self.charts.items():
            slope, parameters = chart.rtt.slope, chart.model.parameters if chart.model else {}
            fits = {"RTT against distance, r": chart.rtt.pearson, "RTT slope": slope}
            fits |= {"log throughput against distance, r": chart.throughput.pearson}
            fits |= {"half-distance": chart.throughput.half_distance, "TCP window W": parameters.get("W")}
            cells = {text: _cell(one) for text, one in (fits | {"capacity C": parameters.get("C")}).items()}
            columns[name] = {"pairs, regions": f"{slope.n:,}, {slope.n_regions}"} | cells
        head = f"value ({percent(LEVEL)} interval, with places as independent units)"
        return pd.DataFrame(columns).rename_axis(head).reset_index()


def charts(pairs: pd.DataFrame, *, resamples: int = 4_000, seed: int = 0, transfer_s: float) -> Charts:
    """
    Fit RTT and throughput against distance, for all pairs and for each ordered pair of clouds.

    For each ordered pair of clouds, the TCP window is fitted as well (by the model "finite transfer", which includes
    slow start). `transfer_s` is the duration of each transfer; `resamples` and `seed` are those of the bootstraps.
    """
    check_columns("pairs", pairs, ["from_cloud", "to_cloud"])
    joined = pairs.from_cloud + "->" + pairs.to_cloud
    groups = {ALL: pairs} | {name: pairs[joined == name] for name in sorted(joined.unique())}
    made, left_out = {}, {}
    for name, part in groups.items():
        try:
            rtt = fit_rtt(part, resamples=resamples, seed=seed)
            throughput = fit_throughput(part, resamples=resamples, seed=seed)
        except ParameterError as error:
            if name == ALL:
                raise
            left_out[name] = str(error)
        else:
            model = None
            if name != ALL:
                with suppress(ParameterError):
                    model = fit_model(part, "finite transfer", transfer_s=transfer_s)
            made[name] = Chart(name, part, rtt, throughput, model)
    return Charts(made, left_out)


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if isnan(estimate.estimate):
        return "not identified"
    interval = estimate.formatted_interval
    return f"{estimate.formatted} ({interval})" if interval else estimate.formatted
