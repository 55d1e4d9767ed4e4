"""RTT and throughput against distance side by side: one chart of a survey."""

from __future__ import annotations

import re

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate

from .charts import ALL, Chart

PANELS = ("round-trip time (ms)", "throughput (bit/s, log axis)")


def distance_chart(chart: Chart, *, note: str = "") -> go.Figure:
    """Every unordered pair of a chart, with both lines and the intervals of their heights."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=PANELS, horizontal_spacing=0.12)
    for column, panel in enumerate((chart.rtt.figure(), chart.throughput.figure()), start=1):
        for trace in panel.data:
            in_legend = column == 1 and trace.showlegend is not False
            figure.add_trace(trace.update(legendgroup=trace.name, showlegend=in_legend), row=1, col=column)
        figure.update_xaxes(panel.layout.xaxis.to_plotly_json(), row=1, col=column)
        figure.update_yaxes(panel.layout.yaxis.to_plotly_json() | {"title": None}, row=1, col=column)
    r, log_r = chart.rtt.pearson, chart.throughput.pearson
    text = f"RTT r = {_r_text(r)}; log throughput r = {_r_text(log_r)} ({percent(r.level)} intervals by place)."
    name = "all pairs" if chart.name == ALL else " to ".join(map(theme.cloud_name, chart.name.split("->")))
    rtt = chart.rtt.sample
    pairs = f"{count(rtt.n_pairs, 'pair')} of {count(rtt.n_regions, 'region')}"
    both = rtt.frame.merge(
        chart.throughput.sample.frame[["region_a", "region_b", "value"]],
        on=["region_a", "region_b"],
        how="outer",
        suffixes=("", "_t"),
    ).rename(columns={"value": "rtt_ms", "value_t": "throughput_bps"})
    return theme.finish(
        figure,
        name=f"distance-chart-{re.sub('[^a-z0-9]+', '-', chart.name)}",
        title=f"Distance against latency and throughput: {name}",
        subtitle=f"One point per unordered pair. Lines: least squares; bands: their intervals by place. {text}",
        alt=f"Two scatters against distance for {pairs}: RTT, and throughput on a log axis. {chart}",
        caption=f"RTT and throughput of {pairs} ({name}) against the great-circle distance. {text}",
        table=both.drop(columns="n_directions"),
        note=note,
        headroom_px=24,
    )


def _r_text(r: Estimate) -> str:
    return f"{r.formatted} ({r.formatted_interval})" if r.formatted_interval else r.formatted
