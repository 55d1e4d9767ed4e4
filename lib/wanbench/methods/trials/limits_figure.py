"""Measured rates against the limits by window, rate and loss."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count

from .limits import COLUMNS, Limits

SHADES = {"window": theme.WITHIN, "rate": theme.OUTSIDE, "loss": "#882288"}
SYMBOLS = {"window": "circle", "rate": "square", "loss": "triangle-up"}


def limits(result: Limits, *, note: str = "") -> go.Figure:
    """A point per trial on log axes; on the diagonal a trial reaches its lowest limit."""
    trials = result.trials
    ends, line = [trials.predicted.min(), trials.predicted.max()], primitives.REFERENCE
    figure = go.Figure()
    figure.add_scatter(x=ends, y=ends, mode="lines", name="measured = allowed", line=line, hoverinfo="skip")
    for name, part in trials.groupby("limit", sort=False):
        text = [theme.plain(f"{row.setting}, RTT {row.rtt_ms:.3g} ms") for row in part.itertuples()]
        figure.add_scatter(
            x=part.predicted,
            y=part.measured,
            mode="markers",
            name=f"limited by the {name} ({count(len(part), 'trial')})",
            marker={"size": 8, "color": SHADES[name], "symbol": SYMBOLS[name], "opacity": 0.8},
            text=text,
            hovertemplate="%{text}<br>allowed %{x:.4g}, measured %{y:.4g}<extra></extra>",
        )
    figure.update_xaxes(
        title="batches/s that the lowest limit allows (log axis)", **theme.log_axis(trials.predicted, "")
    )
    figure.update_yaxes(
        title="batches/s measured (log axis)", **theme.log_axis([*trials.measured, *trials.predicted], "")
    )
    return theme.finish(
        figure,
        name="limits",
        title="What limits: window, rate or loss",
        subtitle="One point per trial: batches/s against the lowest limit: the producers' window, "
        "their share of the rate, or loss. Nothing is fitted.",
        alt=f"Measured against allowed rates. {result}",
        caption=str(result),
        table=trials[["setting", "test_id", "rtt_ms", *COLUMNS, "predicted", "limit", "measured"]],
        note=note,
    )
