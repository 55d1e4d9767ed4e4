"""Measured throughput against what requests, fetches, buffers and links allow."""

from __future__ import annotations

import plotly.graph_objects as go

from ...figures import primitives, theme
from ...formatting import count
from .fetch_model import COLUMNS, FetchModel

NAMED = {
    "producers": ("producers' requests in flight", theme.WITHIN, "circle"),
    "acks": ("acknowledgements in turn", "#D9A300", "x"),
    "fetch": ("what a fetch returns", theme.OUTSIDE, "square"),
    "buffer": ("the fetchers' receive buffer", "#882288", "triangle-up"),
    "rate": ("the rate of links", "#009E73", "diamond"),
}
SHOWN = ["rtt_ms", "follower_rtt_ms", "batch_bytes", "producers", "partitions"]


def fetch_model(result: FetchModel, *, note: str = "") -> go.Figure:
    """A point per trial on logarithmic axes; on the line it reaches what its lowest limit allows."""
    trials = result.trials
    ends = [trials.predicted.min(), trials.predicted.max()]
    figure = go.Figure()
    line = primitives.REFERENCE
    figure.add_scatter(x=ends, y=ends, mode="lines", name="measured = allowed", line=line, hoverinfo="skip")
    for limit, part in trials.groupby("limit", sort=False):
        name, colour, symbol = NAMED[limit]
        texts = [
            f"{row.producers:g} producers, {row.partitions:g} partitions, batch {row.batch_bytes:,.0f} bytes, "
            f"RTT {row.rtt_ms:.3g} ms"
            for row in part.itertuples()
        ]
        figure.add_scatter(
            x=part.predicted,
            y=part[result.measured],
            mode="markers",
            name=f"limited by {name} ({count(len(part), 'trial')})",
            marker={"size": 8, "color": colour, "symbol": symbol, "opacity": 0.8},
            text=texts,
            hovertemplate="%{text}<br>allowed %{x:.4g}, measured %{y:.4g}<extra></extra>",
        )
    figure.update_xaxes(
        title="per second, as the lowest limit allows (log axis)", **theme.log_axis(trials.predicted, "bytes")
    )
    values = [*trials[result.measured], *trials.predicted]
    figure.update_yaxes(title="per second, measured (log axis)", **theme.log_axis(values, "bytes"))
    return theme.finish(
        figure,
        name="fetch-model",
        title="What limits throughput: requests, fetches, buffers or links",
        subtitle="One point per trial: bytes of the log per second against the lowest of what requests in "
        "flight, followers' fetches, their receive buffers and links allow. Nothing is fitted.",
        alt=f"Measured against allowed throughput. {result}",
        caption=str(result),
        table=trials[[*SHOWN, *COLUMNS, "predicted", "limit", result.measured]],
        note=note,
    )
