"""Rows of dots with intervals, and the dashed line that they are compared with."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...figures import theme

ROW_PX = 30
"""Height of a row: one line of text with room to the next."""
BOUND = {"color": theme.MUTED, "dash": "dash", "width": 2}
DOT = {"color": theme.FIT, "size": 9}


def dots(labels, values, lows, highs, name: str) -> go.Figure:
    """One row per label: the value and its interval, the first on top."""
    values, lows, highs = (np.asarray(x, dtype=float) for x in (values, lows, highs))
    bar = {"type": "data", "symmetric": False, "color": theme.FIT, "thickness": 2, "width": 5}
    bar |= {"array": np.nan_to_num(highs - values), "arrayminus": np.nan_to_num(values - lows)}
    rows = np.arange(len(values))
    figure = go.Figure()
    figure.add_scatter(x=values, y=rows, mode="markers", marker=DOT, error_x=bar, name=name)
    ticks = {"tickvals": rows, "ticktext": [theme.plain(label) for label in labels]}
    figure.update_yaxes(**ticks, autorange="reversed", showgrid=False, zeroline=False)
    figure.update_layout(height=max(theme.HEIGHT_PX - 160, 200 + ROW_PX * len(values)))
    return figure


def bound(figure: go.Figure, value: float, text: str) -> None:
    """The dashed vertical line that dots are compared with."""
    figure.add_vline(x=value, line=BOUND, annotation_text=theme.plain(text), annotation_position="top")
