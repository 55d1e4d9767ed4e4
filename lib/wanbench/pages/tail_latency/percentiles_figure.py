"""The percentile plot of latency distributions."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, percent
from wanbench.methods.tails import quantile_intervals as order

from .compare import TailComparison
from .latencies import Quantiles

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
COLUMNS = ["of", "quantile", "latency_ms", "low_ms", "high_ms"]


def percentiles(distributions: Sequence[Quantiles], *, note: str = "") -> go.Figure:
    """
    Latency against the share of records that took longer, on a logarithmic axis of nines, for several distributions.

    Lines are the whole distributions; points are quantiles with their intervals, triangles without upper limit.
    """
    drawn = [each for each in distributions if len(each.tail.values_ms)]
    if not drawn:
        raise ParameterError("no distribution has a record that arrived; allowed: at least one.")
    figure, frames = go.Figure(), []
    for k, result in enumerate(drawn):
        colour, dash = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)], DASHES[k % len(DASHES)]
        x, y = _curve(result.tail)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=f"{theme.plain(result.tail.name)} ({count(result.tail.n, 'record')})",
            line={"color": colour, "dash": dash, "width": 2, "shape": "hv"},
            legendgroup=str(k),
        )
        finite = [(q, e) for q, e in zip(result.quantiles, result.estimates, strict=True) if isfinite(e.estimate)]
        rows = [(result.tail.name, q, e.estimate, e.low, e.high) for q, e in finite]
        frame = pd.DataFrame(rows, columns=COLUMNS)
        frames.append(frame)
        if finite:
            primitives.interval_points(
                figure,
                1 - frame["quantile"],
                frame.latency_ms,
                frame.low_ms,
                frame.high_ms,
                vertical=True,
                marker={
                    "color": colour,
                    "size": 10,
                    "symbol": ["circle" if isfinite(e.high) else "triangle-up" for _, e in finite],
                },
                text=[theme.plain(e.sentence) for _, e in finite],
                showlegend=False,
                legendgroup=str(k),
            )
    table = pd.concat(frames, ignore_index=True)
    nines = max(1, max(floor(log10(result.tail.n)) for result in distributions))
    ticks = [0.5, *(10.0**-k for k in range(1, nines + 1))]
    figure.update_xaxes(
        type="log",
        range=[log10(0.7), log10(min(ticks)) - 0.15],
        tickvals=ticks,
        ticktext=[order.name(1 - tick) for tick in ticks],
        title="share of records with at most this latency (log axis of the remaining share)",
    )
    ends = table[["latency_ms", "low_ms", "high_ms"]].to_numpy().ravel()
    figure.update_yaxes(**theme.log_axis(ends, "ms"), title="latency (ms, log axis)")
    level = percent(distributions[0].estimates[0].level)
    return theme.finish(
        figure,
        name="tails",
        title=f"Latency of {' and '.join(result.tail.name for result in distributions)}",
        subtitle=f"Points: quantiles with their {level} intervals, triangles where there is no upper limit.",
        alt=f"Percentile plot of latencies. {' '.join(result.estimates[-1].sentence for result in distributions)}",
        caption=" ".join(result.sentence for result in distributions),
        table=table,
        note=note,
    )


def one(result: Quantiles, *, note: str = "") -> go.Figure:
    """The percentile plot of one distribution."""
    return percentiles([result], note=note)


def both(comparison: TailComparison, *, note: str = "") -> go.Figure:
    """The percentile plot of the two distributions of a comparison."""
    return percentiles([comparison.a, comparison.b], note=note or comparison.sentence)


def _curve(tail) -> tuple[np.ndarray, np.ndarray]:
    """The share of records above each latency, and the latency, thinned where points are dense."""
    above = 1 - np.concatenate([[0.0], tail.cumulative[:-1]]) / tail.n
    # points evenly far apart on the logarithmic axis
    places = np.unique(np.searchsorted(-above, -np.logspace(0, log10(above.min()), theme.MAX_POINTS)))
    places = places[places < len(above)]
    return above[places], tail.values_ms[places]
