"""Two links compared: every trial, and the ratio by each method."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import primitives, theme
from wanbench.formatting import percent, quantity

from .rates import MEASURED
from .rates_figure import add_mean, points
from .two_links import TwoLinks

SECONDS = "seconds"


def two_links(result: TwoLinks, *, note: str = "") -> go.Figure:
    """Left every trial, joined with its pair; right the ratio by each method."""
    a, b = map(theme.plain, result.names)
    titles = ["what each trial reached", f"{b} over {a}"]
    columns = {"column_widths": [0.6, 0.4], "horizontal_spacing": 0.2}
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles, **columns)
    left = {"row": 1, "col": 1}
    for pair in result.pairs.itertuples():
        figure.add_scatter(
            x=[pair.order_a, pair.order_b],
            y=[pair.a, pair.b],
            mode="lines",
            line={"color": theme.GRID, "width": 2},
            hoverinfo="skip",
            showlegend=False,
            **left,
        )
    marks = theme.arm_marks(result.names)
    for name in result.names:
        shade, symbol = marks[name]
        part = result.trials[result.trials.link == name]
        figure.add_scatter(**points(part, result.value, name, shade, symbol), **left)
        add_mean(figure, part[result.value], result.trials.order, shade, **left)
    label, unit = MEASURED[result.value]
    figure.update_xaxes(title="trial, in the order of measuring", **left)
    figure.update_yaxes(title=f"{label} ({unit})", rangemode="tozero", **left)
    rows = _methods(result)
    _draw_ratios(figure, rows)
    level = percent(result.ratio.level)
    trials = result.trials[["order", "block", "link", result.value]]
    return theme.finish(
        figure,
        name="two-links",
        title=f"{result.names[1]} against {result.names[0]}: {label}",
        subtitle=f"Left: a point per trial, lines join pairs, bands are {level} intervals of the mean. Right: the "
        f"ratio with its {level} interval by each method; hollow: every second taken as independent. Dashed: no "
        "difference.",
        alt=f"Two links compared. {result}",
        caption=result.sentence,
        table=pd.concat([trials, pd.DataFrame(rows, columns=["method", "ratio", "low", "high"])]),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _methods(result: TwoLinks) -> list[tuple]:
    """Method, ratio and interval of each."""
    single = result.by_trial.means
    named = {
        "in pairs": result.ratio if result.paired is not None else None,
        "without drift": result.drift_free,
        "trials, unpaired": single,
    }
    rows = [(name, one.estimate, one.low, one.high) for name, one in named.items() if one is not None]
    if len(result.seconds) > len(result.trials):
        rows.append((SECONDS, single.estimate, single.naive.low, single.naive.high))
    return rows


def _draw_ratios(figure: go.Figure, rows: list[tuple]) -> None:
    right = {"row": 1, "col": 2}
    for k, (name, estimate, low, high) in enumerate(rows):
        hollow = name == SECONDS
        shade, symbol = (theme.LIGHT, "circle-open") if hollow else (theme.FIT, "circle")
        marker = {"size": 11, "color": shade, "symbol": symbol}
        text = [quantity(estimate, "times", low, high)]
        primitives.interval_points(
            figure, [k], [estimate], [low], [high], marker=marker, text=text, showlegend=False, **right
        )
    primitives.label_rows(figure, [row[0] for row in rows], **right)
    figure.update_xaxes(title="times", **right)
    primitives.reference_line(figure, x=1, **right)
