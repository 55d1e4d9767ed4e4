"""The shift function of two distributions."""

from __future__ import annotations

from math import log10

import numpy as np
import plotly.graph_objects as go

from ...figures import primitives, theme
from ...formatting import percent
from . import quantile_intervals as order
from .shift_function import Shift

COLUMNS = ["quantile", "a_estimate", "b_estimate", "difference_estimate", "difference_low", "difference_high"]


def shift(result: Shift, *, note: str = "") -> go.Figure:
    """
    The difference in ms against the quantile, on an axis of nines, with its simultaneous band.

    Orange: the band excludes 0. Triangles: an end is open.
    """
    table = result.table()
    known = table[np.isfinite(table.difference_estimate)]
    colours = [theme.OUTSIDE if agree is False else theme.WITHIN for agree in known.agree]
    ends = known[["difference_low", "difference_high"]]
    symbols = np.where(np.isfinite(ends).all(axis=1), "circle", "triangle-up").tolist()
    figure = go.Figure()
    closed = known[np.isfinite(ends).all(axis=1)]
    at = 1 - known["quantile"]
    primitives.band(figure, 1 - closed["quantile"], closed.difference_low, closed.difference_high)
    figure.add_scatter(
        x=at,
        y=known.difference_estimate,
        mode="lines",
        line={"color": theme.FIT, "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    primitives.interval_points(
        figure,
        at,
        known.difference_estimate,
        known.difference_low,
        known.difference_high,
        vertical=True,
        marker={"color": colours, "size": 9, "symbol": symbols},
        bar={"color": theme.MUTED},
        text=[theme.plain(one.sentence) for one in result.differences if np.isfinite(one.estimate)],
        showlegend=False,
    )
    primitives.reference_line(figure, y=0)
    nines = [0.9, 0.5, *(10.0**-k for k in range(1, 8) if 10.0**-k >= at.min() * 0.99)] if len(at) else [0.5]
    figure.update_xaxes(
        type="log",
        range=[log10(0.98), log10(min([*at, 0.1])) - 0.15],
        tickvals=nines,
        ticktext=[order.name(1 - tick) for tick in nines],
        title="quantile (log axis of the remaining share)",
    )
    figure.update_yaxes(
        title=f"{theme.plain(result.b.tail.name)} minus {theme.plain(result.a.tail.name)} (ms)"
    )
    return theme.finish(
        figure,
        name="shift",
        title=f"Shift function: {result.b.tail.name} against {result.a.tail.name}",
        subtitle=f"Difference at each quantile; the bars are simultaneous in {percent(result.level)} of cases. "
        "Orange: differs from 0. Triangle: an end is open.",
        alt=f"Shift function. {result.sentence}",
        caption=result.sentence,
        table=table[COLUMNS],
        note=note,
    )
