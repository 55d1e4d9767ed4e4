"""Throughput at each level of a factor over the baseline: one figure per factor, and an overview."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent

from .curves import Curve, Curves

ROW_PX = 24
AROUND_PX = 170
WIDE = 5.0
"""
The axis is logarithmic from this ratio of the largest to the smallest value on, so that small values stay visible.
"""


def curve(result: Curve, *, note: str = "") -> go.Figure:
    """Each level with its interval, and each trial as a point, as multiples of the baseline."""
    levels, figure = result.levels, go.Figure()
    for k, row in enumerate(levels.itertuples()):
        part = result.trials[result.trials.label == row.label]
        figure.add_scatter(
            x=k + theme.spread(len(part), 0.25),
            y=part.ratio,
            mode="markers",
            marker={"size": 7, "color": theme.UNKNOWN, "opacity": 0.7},
            name="a trial",
            showlegend=k == 0,
            hovertemplate="one trial: %{y:.3g} times<extra></extra>",
        )
    others = levels[~levels.baseline]
    _levels(figure, others, theme.WITHIN, "circle", f"mean, {percent(result.range.level)} interval")
    _levels(figure, levels[levels.baseline], theme.OUTSIDE, "diamond", "the baseline")
    primitives.reference_line(figure, y=1)
    ticks = [_two_lines(label) for label in levels.label]
    figure.update_xaxes(tickvals=list(range(len(ticks))), ticktext=ticks, range=[-0.6, len(ticks) - 0.4])
    axis = _axis([*levels.ratio, *result.trials.ratio], [*levels.low, *levels.high])
    figure.update_yaxes(title="times the baseline" + (" (log axis)" if axis.get("type") == "log" else ""), **axis)
    figure.update_layout(legend=theme.LEGEND_ON_TOP)
    return theme.finish(
        figure,
        name=f"curve-{result.factor.replace('_', '-').replace('.', '-').replace(' ', '-').lower()}",
        title=f"Throughput by {result.label}",
        subtitle="All else as in the baseline (dashed). Small: single trials. Intervals are simultaneous over all "
        "factors.",
        alt=f"Throughput by {result.label}, {count(len(levels), 'level')}. {result}",
        caption=str(result),
        table=levels.drop(columns=["numeric", "cell"]),
        note=note,
    )


def _levels(figure: go.Figure, levels: pd.DataFrame, shade: str, symbol: str, name: str) -> None:
    """The means of these levels, with the compression ratio as hover text."""
    text = [
        f"{theme.plain(row.label)}: {number(row.ratio, 2)} times, payload over log {number(row.compression, 2)}"
        for row in levels.itertuples()
    ]
    primitives.interval_points(
        figure,
        list(levels.index),
        levels.ratio,
        levels.low,
        levels.high,
        marker={"size": 12, "color": shade, "symbol": symbol},
        text=text,
        vertical=True,
        name=name,
    )


def overview(result: Curves, *, note: str = "") -> go.Figure:
    """One row per level, grouped by factor: its ratio to the baseline, with interval; MissingDataError without any."""
    if not result.curves:
        raise MissingDataError("no factor was varied alone.")
    figure, labels, rows = go.Figure(), [], []
    shades = theme.SERIES_COLOURS
    for k, one in enumerate(result.curves.values()):
        part = one.levels[~one.levels.baseline]
        at = range(len(labels), len(labels) + len(part))
        labels += [f"{one.label}: {label}" for label in part.label]
        rows.append(part.assign(factor=one.label))
        primitives.interval_points(
            figure,
            list(at),
            part.ratio,
            part.low,
            part.high,
            marker={"size": 10, "color": shades[k % len(shades)]},
            text=[f"{theme.plain(row.label)}: {number(row.ratio, 2)} times" for row in part.itertuples()],
            name=one.label,
            showlegend=False,
        )
    table = pd.concat(rows, ignore_index=True)
    primitives.label_rows(figure, [theme.plain(label) for label in labels])
    primitives.reference_line(figure, x=1)
    axis = _axis(table.ratio, [*table.low, *table.high])
    figure.update_xaxes(title="times the baseline" + (" (log axis)" if axis.get("type") == "log" else ""), **axis)
    figure.update_layout(height=AROUND_PX + ROW_PX * len(labels))
    return theme.finish(
        figure,
        name="curves",
        title="What each change to the baseline does to throughput",
        subtitle=f"One factor at a time. Bars: {percent(result.level)} intervals, simultaneous over all rows. "
        "Dashed: the baseline.",
        alt=f"Ratio of throughput to the baseline, {count(len(labels), 'level')}. {result}",
        caption=str(result),
        table=table[["factor", "label", "n", "ratio", "low", "high"]],
        note=note,
    )


def _axis(values, ends) -> dict:
    """A log axis for wide ranges, else one from zero; intervals far beyond all values are cut."""
    known = np.asarray([value for value in values if np.isfinite(value) and value > 0])
    ends = np.asarray([end for end in ends if np.isfinite(end)])
    if len(known) and known.max() / known.min() > WIDE:
        return theme.log_axis([*known, *ends[(ends > known.min() / WIDE) & (ends < known.max() * WIDE)]], "")
    return {"rangemode": "tozero"}


def _two_lines(label: str) -> str:
    return "<br>".join(theme.plain(part) for part in label.split(", "))
