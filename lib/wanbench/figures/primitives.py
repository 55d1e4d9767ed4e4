"""
Drawing primitives that figures share: points with intervals, bands, strips of points, reference lines, labelled rows.

Every function that draws takes the figure first, and passes further keywords, such as `row`, `col`, `name` and
`legendgroup`, on to Plotly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from . import theme

BAND_COLOUR = "rgba(0, 114, 178, 0.12)"  # `theme.WITHIN`, pale enough for points to show through.
# Line style of a reference value, such as "no difference".
REFERENCE = {"color": theme.LIGHT, "dash": "dash", "width": 2}


def interval_bar(middle, low, high, **style) -> dict | None:
    """
    Settings of `error_x` or `error_y` for bars from `low` to `high`; None where no end is finite.

    An open or missing end has no bar. `style` is Plotly's: `color`, `thickness` (default 2), `width` of the caps (6).

    >>> bar = interval_bar([2.0], [1.5], [np.inf])
    >>> bar["arrayminus"], bar["array"]
    ([0.5], [0.0])
    """
    middle, low, high = (np.asarray(ends, dtype=float) for ends in (middle, low, high))
    if not (np.isfinite(low) | np.isfinite(high)).any():
        return None
    lengths = {
        name: np.where(np.isfinite(length), length, 0.0).tolist()
        for name, length in (("array", high - middle), ("arrayminus", middle - low))
    }
    return {"type": "data", "symmetric": False, "thickness": 2, "width": 6} | lengths | style


def interval_points(
    figure: go.Figure,
    at: Sequence,
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    marker: dict,
    text: Sequence[str] | None = None,
    vertical: bool = False,
    bar: dict | None = None,
    **more,
) -> None:
    """
    A trace of points with interval bars.

    Parameters
    ----------
    at : sequence
        Positions on the other axis: rows, or columns if `vertical`.
    text : sequence of str, optional
        Hover text of each point, as Plotly's pseudo-HTML.
    bar : dict, optional
        Style of the bars, as in `interval_bar`; their colour is the marker's by default.
    """
    style = {"color": marker["color"]} if isinstance(marker.get("color"), str) else {}
    error = interval_bar(middle, low, high, **style | (bar or {}))
    along, across, error_name = ("y", "x", "error_y") if vertical else ("x", "y", "error_x")
    if text is not None:
        more = {"text": list(text), "hovertemplate": "%{text}<extra></extra>"} | more
    positions = {along: list(middle), across: list(at), error_name: error}
    figure.add_scatter(**positions, mode="markers", marker=marker, **more)


def estimate_points(figure: go.Figure, at: Sequence, estimates: Sequence, *, marker: dict, **more) -> None:
    """Estimates with their intervals, as `interval_points`; the hover text is the quoted estimate."""
    texts = [theme.plain(f"{one.formatted} ({one.formatted_interval or 'no interval'})") for one in estimates]
    numbers = [[getattr(one, name) for one in estimates] for name in ("estimate", "low", "high")]
    interval_points(figure, at, *numbers, marker=marker, **{"text": texts} | more)


def band(figure: go.Figure, x, low, high, *, color: str = BAND_COLOUR, **more) -> None:
    """The area between two curves; nothing where an end is missing."""
    x, low, high = (np.asarray(ends, dtype=float) for ends in (x, low, high))
    if not len(x) or np.isnan([low, high]).any():
        return
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=color,
        line={"width": 0},
        **{"hoverinfo": "skip", "showlegend": False} | more,
    )


def reference_line(figure: go.Figure, *, x: float | None = None, y: float | None = None, **more) -> None:
    """A dashed line across the panel at `x` (vertical) or at `y` (horizontal)."""
    if x is not None:
        figure.add_vline(x=x, **{"line": REFERENCE} | more)
    if y is not None:
        figure.add_hline(y=y, **{"line": REFERENCE} | more)


def label_rows(figure: go.Figure, labels: Sequence[str], **where) -> None:
    """Labels for rows 0, 1, ... of the y axis, the first on top."""
    figure.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=list(labels),
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        **where,
    )
