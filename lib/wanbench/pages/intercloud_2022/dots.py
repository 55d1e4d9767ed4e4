"""Rows of dots with intervals, and a dashed reference line."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import interval_points, reference_line

ROW_PX = 30
"""Height of a row: one line of text with room to the next."""
DOT = {"color": theme.FIT, "size": 9}


def dots(labels, values, lows, highs, name: str) -> go.Figure:
    """One row per label: the value and its interval, the first on top."""
    rows = list(range(len(values)))
    figure = go.Figure()
    interval_points(figure, rows, values, lows, highs, marker=DOT, bar={"width": 5}, name=name)
    ticks = {"tickvals": rows, "ticktext": [theme.plain(label) for label in labels]}
    figure.update_yaxes(**ticks, autorange="reversed", showgrid=False, zeroline=False)
    figure.update_layout(height=max(theme.HEIGHT_PX - 160, 200 + ROW_PX * len(values)))
    return figure


def bound(figure: go.Figure, value: float, text: str) -> None:
    """The dashed vertical reference line."""
    reference_line(figure, x=value, annotation_text=theme.plain(text), annotation_position="top")
