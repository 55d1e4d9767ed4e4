"""Throughput against producers: trials, the fitted law, linear growth."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .scalability import Scalability


def scalability(result: Scalability, *, note: str = "") -> go.Figure:
    """A point per trial, the law with its interval, and linear growth from one producer, on logarithmic axes."""
    trials, curve = result.trials, result.curve
    figure = go.Figure()
    primitives.band(figure, curve.producers, curve.low, curve.high)
    figure.add_scatter(
        x=curve.producers, y=curve.fitted, mode="lines", name="fitted law", line={"color": theme.FIT, "width": 2}
    )
    figure.add_scatter(x=curve.producers, y=curve.linear, mode="lines", name="linear growth", line=primitives.REFERENCE)
    figure.add_scatter(
        x=trials[result.producers],
        y=trials._response,
        mode="markers",
        name="trials",
        marker={"size": 8, "color": theme.WITHIN, "opacity": 0.8},
        hovertemplate="%{x:.4g}: %{y:.4g}<extra></extra>",
    )
    figure.update_xaxes(
        title=theme.plain(f"{result.producers} (log axis)"), **theme.log_axis(trials[result.producers], "")
    )
    unit = f", {result.unit}" if result.unit else ""
    figure.update_yaxes(
        title=theme.plain(f"{result.throughput}{unit} (log axis)"),
        **theme.log_axis([*trials._response, *curve.linear, *curve.low], result.unit),
    )
    return theme.finish(
        figure,
        name="scalability",
        title=f"{result.throughput} against {result.producers}",
        subtitle="Points: trials; line: the Universal Scalability Law, band: its "
        f"{percent(result.level)} individual interval at each number. Dashed: linear growth "
        "from the fitted throughput of one.",
        alt=f"Throughput against producers. {result}",
        caption=str(result),
        table=curve,
        note=note,
    )
