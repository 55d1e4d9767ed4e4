"""
Draw points with intervals, bands, reference lines and labelled rows.

Drawing functions take the figure first, and pass further keyword arguments, such as `row`, `col`, `name` and
`legendgroup`, to Plotly.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from wanbench.methods.result.estimate import Estimate

from . import theme
from .theme import Settings

BAND_COLOUR = "rgba(0, 114, 178, 0.12)"  # `theme.WITHIN`, pale enough to see points behind it.
# Line style of a reference value, such as "no difference".
REFERENCE = {"color": theme.LIGHT, "dash": "dash", "width": 2}


def interval_bar(middle: ArrayLike, low: ArrayLike, high: ArrayLike, **style: object) -> Settings | None:
    """
    Return Plotly's `error_x` or `error_y` for bars from `low` to `high`, or None if no bar has a finite end.

    Infinite and missing ends get no bar. `style` overrides Plotly's settings `color`, `thickness` (default 2) and
    `width` of the caps (default 6).

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
    figure: go.Figure, at: Iterable[object], *ends: ArrayLike, marker: Settings, vertical: bool = False, **more: Any
) -> None:
    """
    Add a trace of points with bars; bars are horizontal unless `vertical` is true.

    `at` holds the positions of the points on the other axis; `ends` are the points, and the low and the high ends of
    their bars. In `more`, `text` is the hover text of each point, in Plotly's HTML, and `bar` the style of
    `interval_bar`; by default, bars have the colour of the marker.
    """
    style = {"color": marker["color"]} if isinstance(marker.get("color"), str) else {}
    error = interval_bar(*ends, **style | more.pop("bar", {}))
    along, across, error_name = ("y", "x", "error_y") if vertical else ("x", "y", "error_x")
    more = ({"hovertemplate": "%{text}<extra></extra>"} if "text" in more else {}) | more
    positions = {along: np.asarray(ends[0]).tolist(), across: list(at), error_name: error}
    figure.add_scatter(**positions, mode="markers", marker=marker, **more)


def estimate_points(
    figure: go.Figure, at: Iterable[object], estimates: Sequence[Estimate], *, marker: Settings, **more: Any
) -> None:
    """Add a trace of estimates with their intervals (see `interval_points`); the hover text gives both as numbers."""
    texts = [theme.plain(one.with_ends) for one in estimates]
    more = {"text": texts} | more
    numbers = [[getattr(one, name) for one in estimates] for name in ("estimate", "low", "high")]
    interval_points(figure, at, *numbers, marker=marker, **more)


def band(
    figure: go.Figure, x: ArrayLike, low: ArrayLike, high: ArrayLike, color: str = BAND_COLOUR, **more: object
) -> None:
    """Fill the area between two curves; add nothing if a value is missing."""
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


def reference_line(figure: go.Figure, *, x: float | None = None, y: float | None = None, **more: object) -> None:
    """Add a dashed vertical line at `x`, a horizontal one at `y`, or both."""
    if x is not None:
        figure.add_vline(x=x, **{"line": REFERENCE} | more)
    if y is not None:
        figure.add_hline(y=y, **{"line": REFERENCE} | more)


def label_rows(figure: go.Figure, labels: Sequence[str], **where: int) -> None:
    """Label the positions 0, 1, ... of the y axis, with 0 on top."""
    figure.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=list(labels),
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        **where,
    )
