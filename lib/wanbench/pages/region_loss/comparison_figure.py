"""Time without writes against lost records, a point per setting."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme

from .comparison import Comparison
from .recovery_figure import open_ends


def comparison(result: Comparison, *, note: str = "") -> go.Figure:
    """Horizontal: median outage with its interval. Vertical: lost records per episode. Small points are episodes."""
    figure = go.Figure()
    keys = ["run_id", "test_id", "attempt", "setting"]
    points = result.recovered.rows.merge(result.lost.rows[[*keys, "gone", "acknowledged", "acks"]], on=keys)
    symbols = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
    for k, name in enumerate(result.settings):
        shade = theme.OUTSIDE if name in result.losing else theme.WITHIN
        own, estimate = points[points.setting == name], result.recovered.of(name, "writes")
        middle = own.gone.mean()
        symbol = symbols[k % len(symbols)]
        figure.add_scatter(
            x=own.writes,
            y=own.gone,
            mode="markers",
            showlegend=False,
            marker={"size": 6, "color": shade, "opacity": 0.45, "symbol": symbol},
            hovertemplate="one episode: %{x:.2f} s, %{y} lost<extra></extra>",
        )
        primitives.estimate_points(
            figure,
            [middle],
            [estimate],
            marker={"size": 13, "color": shade, "symbol": symbol},
            name=theme.plain(f"{name}: {int(own.gone.sum()):,} of {int(own.acknowledged.sum()):,} lost"),
        )
        open_ends(figure, [middle], [estimate], 1.04 * points.writes.max(), shade)
    most = max(points.gone.max(), 1)
    figure.update_xaxes(title="no write acknowledged outside the hit region (s)", rangemode="tozero")
    figure.update_yaxes(title="acknowledged records lost per episode", range=[-0.05 * most, 1.08 * most])
    figure.update_layout(legend={"orientation": "h", "y": -0.2})
    return theme.finish(
        figure,
        name="time-against-records",
        title="Stand still, or lose records",
        subtitle="Small: one episode. Large: median outage with its interval (fewer than six episodes: smallest to "
        "largest; dotted: without an upper end), mean loss. Orange: settings that lost acknowledged records.",
        alt=f"Outage against loss per setting. {result}",
        caption=str(result),
        table=result.table(),
        note=note,
    )
