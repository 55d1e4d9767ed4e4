"""RTT and throughput against distance side by side: one chart of a survey."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import percent
from ...regions import LIGHT_RTT_MS_PER_KM
from ...stats.distance.pair_points import BAND_COLOUR, BAND_POINTS, FEW_PAIRS, basis, pair_labels
from ...stats.regions.unordered_pairs import unordered
from .charts import ALL, Chart

PANELS = ("round-trip time (ms)", "throughput (bit/s, log axis)")


def distance_chart(chart: Chart, *, note: str = "") -> go.Figure:
    """Every unordered pair of a chart, with both lines and the intervals of their heights."""
    rtt, throughput = unordered(chart.pairs, "rtt_ms"), chart.throughput.sample
    figure = make_subplots(rows=1, cols=2, subplot_titles=PANELS, horizontal_spacing=0.12)
    ends = np.array([0.0, rtt.frame.distance_km.max() * 1.02])
    for column, (sample, fit, y) in enumerate(
        ((rtt, chart.rtt, "rtt_ms"), (throughput, chart.throughput, "throughput_bps")), start=1
    ):
        _points(figure, sample.frame, column)
        _line(figure, fit.band(np.linspace(*ends, BAND_POINTS)), y, column)
    floor = {"color": theme.LIGHT, "width": 2, "dash": "dash"}
    light = ends * LIGHT_RTT_MS_PER_KM
    figure.add_scatter(x=ends, y=light, mode="lines", name="light in fibre", line=floor, row=1, col=1)
    figure.update_xaxes(title="great-circle distance (km)", range=ends, tickformat=",d")
    figure.update_yaxes(range=[0, max(rtt.frame.value.max(), light[-1]) * 1.05], row=1, col=1)
    figure.update_yaxes(**theme.log_axis(throughput.frame.value, "bit/s"), row=1, col=2)
    r, log_r = chart.rtt.pearson, chart.throughput.pearson
    level = percent(r.level)
    said = f"RTT r = {_said(r)}; log throughput r = {_said(log_r)} ({level} intervals by place)."
    name = "all pairs" if chart.name == ALL else " to ".join(map(theme.cloud_name, chart.name.split("->")))
    both = rtt.frame.merge(
        throughput.frame[["region_a", "region_b", "value"]],
        on=["region_a", "region_b"],
        how="outer",
        suffixes=("", "_t"),
    ).rename(columns={"value": "rtt_ms", "value_t": "throughput_bps"})
    return theme.finish(
        figure,
        name=f"distance-chart-{re.sub('[^a-z0-9]+', '-', chart.name)}",
        title=f"Distance against latency and throughput: {name}",
        subtitle="One point per unordered pair. Lines: least squares; bands: their intervals by place. "
        + said,
        alt=f"Two scatters against distance for {basis(rtt)}: RTT, and throughput on a log axis. {chart}",
        caption=f"RTT and throughput of {basis(rtt)} ({name}) against the great-circle distance. {said}",
        table=both.drop(columns="n_directions"),
        note=note,
        headroom_px=24,
    )


def _points(figure, frame, column) -> None:
    size = {"size": 5, "opacity": 0.6} if len(frame) > FEW_PAIRS else {"size": 8, "opacity": 0.9}
    for name in sorted(frame.cloud_pair.unique()):
        part = frame[frame.cloud_pair == name]
        marker = {"color": theme.colour(name), "symbol": theme.SYMBOLS.get(name, "circle")} | size
        figure.add_scatter(
            x=part.distance_km,
            y=part.value,
            mode="markers",
            name=theme.cloud_name(name),
            legendgroup=name,
            showlegend=column == 1,
            marker=marker,
            text=pair_labels(part),
            hovertemplate="%{text}<br>%{x:,.0f} km<br>%{y:.3s}<extra></extra>",
            row=1,
            col=column,
        )


def _line(figure, band, y, column) -> None:
    style = {"hoverinfo": "skip", "showlegend": False, "row": 1, "col": column, "mode": "lines"}
    if band.low.notna().all():
        around = np.concatenate([band.distance_km, band.distance_km[::-1]])
        edge = np.concatenate([band.high, band.low[::-1]])
        figure.add_scatter(x=around, y=edge, fill="toself", fillcolor=BAND_COLOUR, line={"width": 0}, **style)
    figure.add_scatter(x=band.distance_km, y=band[y], line={"color": theme.FIT, "width": 2.5}, **style)


def _said(r) -> str:
    return f"{r.written} ({r.written_interval})" if r.written_interval else r.written
