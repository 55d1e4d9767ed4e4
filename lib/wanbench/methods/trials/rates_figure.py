"""Trials in the order in which they were measured, with the mean of each setting."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count, percent

from .means import half_width
from .rates import MEASURED, TrialRates

LEVEL = 0.95
MAX_SETTINGS = len(theme.SERIES_COLOURS)
VALUE = "batches_per_s"
LABEL, UNIT = MEASURED[VALUE]


def trials_in_order(rates: TrialRates, *, note: str = "") -> go.Figure:
    """Every trial as a point, in the order of measuring, with the mean of each setting and its interval."""
    rows = rates.rates
    marks = theme.arm_marks(rows.setting)
    names = list(dict.fromkeys(rows.setting.astype(str)))
    figure = go.Figure()
    _shade_blocks(figure, rows)
    for name in names:
        part = rows[rows.setting.astype(str) == name]
        shade, symbol = marks[name]
        figure.add_scatter(**points(part, VALUE, name, shade, symbol))
        if len(names) <= MAX_SETTINGS:
            add_mean(figure, part[VALUE], rows.order, shade)
    figure.update_xaxes(title="trial, in the order of measuring (grey: every second block)")
    figure.update_yaxes(title=f"{LABEL} ({UNIT})", rangemode="tozero")
    cautions = [f"Caution: {caution}." for caution in rates.cautions]
    return theme.finish(
        figure,
        name="trials-in-order",
        title=f"What each trial reached: {LABEL}",
        subtitle=f"One point per trial. Lines: mean of a setting; bands: its {percent(LEVEL)} interval (trials as "
        "units).",
        alt=f"Trials in the order of measuring. {rates}",
        caption=" ".join([f"{rates.rule}. {count(len(rows), 'trial')}.", *cautions]),
        table=rows[["order", "block", "setting", "test_id", VALUE, "n_seconds", "counted_by"]],
        note=note,
    )


def points(part: pd.DataFrame, value: str, name: str, shade: str, symbol: str) -> dict:
    """Points of trials, as a trace."""
    text = [
        theme.plain(f"{row.test_id}: {row.n_seconds} s by {row.counted_by}")
        for row in part[["test_id", "n_seconds", "counted_by"]].itertuples(index=False)
    ]
    return {
        "x": part.order,
        "y": part[value],
        "mode": "markers",
        "name": f"{theme.plain(name)} ({count(len(part), 'trial')})",
        "marker": {"size": 9, "color": shade, "symbol": symbol, "opacity": 0.85},
        "text": text,
        "hovertemplate": "%{text}<br>%{y:.4g}<extra></extra>",
    }


def add_mean(figure: go.Figure, values: pd.Series, order: pd.Series, shade: str, **where) -> None:
    """A line at the mean of the values over the range of `order`, with its interval as a band."""
    values = values.dropna().to_numpy(dtype=float)
    if not len(values):
        return
    mean, x = float(values.mean()), [float(order.min()), float(order.max())]
    line = {"color": shade, "width": 2}
    figure.add_scatter(x=x, y=[mean] * 2, mode="lines", line=line, showlegend=False, hoverinfo="skip", **where)
    half = half_width(values, LEVEL)
    primitives.band(figure, x, [mean - half] * 2, [mean + half] * 2, color=shade, opacity=0.15, **where)


def _shade_blocks(figure: go.Figure, rates: pd.DataFrame) -> None:
    """Every second block in grey, if the trials of a block were measured together."""
    known = rates[rates.block.notna()]
    if known.block.nunique() < 2:
        return
    ends = known.groupby(["run_id", "block"]).order.agg(["min", "max"]).sort_values("min")
    if (ends["min"].to_numpy()[1:] <= ends["max"].to_numpy()[:-1]).any():
        return
    grey = {"fillcolor": theme.GRID, "opacity": 0.45, "line_width": 0, "layer": "below"}
    for first, last in ends.iloc[1::2].itertuples(index=False):
        figure.add_vrect(x0=first - 0.5, x1=last + 0.5, **grey)
