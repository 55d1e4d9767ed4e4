"""Two arms: their values over time or by run, and the ratios of their means and medians."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import primitives, theme
from wanbench.formatting import percent, quantity

from .arms import Arm
from .compare import Comparison

SYMBOLS = ("circle", "diamond")
NAIVE_OFFSET = 0.18
"""How far below its row the naive interval is drawn."""
AXES = {"series": "value, in order of time", "runs": "run", "blocks": "block"}


def comparison(result: Comparison, *, note: str = "") -> go.Figure:
    """Left: each value of a series, or the mean of each run or block; right: the ratios."""
    kind = result.unit_of_replication
    figure = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.62, 0.38],
        horizontal_spacing=0.14,
        subplot_titles=["measured", f"{theme.plain(result.b.name)} over {theme.plain(result.a.name)}"],
    )
    frames = []
    for arm, shade, symbol in zip((result.a, result.b), theme.SERIES_COLOURS, SYMBOLS, strict=False):
        x, y = _points(arm, kind)
        shown = slice(None, None, max(1, len(x) // theme.MAX_POINTS))
        figure.add_scatter(
            x=x[shown],
            y=y[shown],
            mode="markers",
            name=theme.plain(arm.name),
            marker={"color": shade, "symbol": symbol, "size": 4 if kind == "series" else 9, "opacity": 0.7},
            row=1,
            col=1,
        )
        ends = [min(x, default=0), max(x, default=0)]
        line = {"x": ends, "y": [arm.mean] * 2, "mode": "lines", "line": {"color": shade, "width": 2}}
        figure.add_scatter(**line, name=f"mean {quantity(arm.mean, result.unit)}", row=1, col=1)
        frames.append(pd.DataFrame({"arm": arm.name, AXES[kind].partition(",")[0]: x, "measured": y}))
    figure.update_xaxes(title=AXES[kind], row=1, col=1)
    unit = f" ({result.unit})" if result.unit else ""
    figure.update_yaxes(title=theme.plain(f"{result.value}{unit}"), rangemode="tozero", row=1, col=1)
    _ratios(figure, result)
    level = percent(result.means.level)
    return theme.finish(
        figure,
        name="two-arms",
        title=f"{result.b.name} against {result.a.name}: {result.value}",
        subtitle=f"Right: ratio with its {level} interval ({result.means.basis}); hollow: the interval if every "
        "value were independent. Dashed: no difference.",
        alt=f"Two arms compared. {result}",
        caption=result.sentence,
        table=pd.concat(frames, ignore_index=True),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _points(arm: Arm, kind: str) -> tuple[np.ndarray, np.ndarray]:
    y = arm.values if kind == "series" else np.array([unit.mean() for unit in arm.units])
    return np.arange(1, len(y) + 1), y


def _ratios(figure: go.Figure, result: Comparison) -> None:
    where = {"showlegend": False, "row": 1, "col": 2}
    ratios = (result.means, result.medians)
    primitives.estimate_points(figure, (0, 1), ratios, marker={"size": 12, "color": theme.FIT}, **where)
    for row, ratio in enumerate(ratios):
        if ratio.formatted_naive:
            primitives.interval_points(
                figure,
                [row + NAIVE_OFFSET],
                [ratio.estimate],
                [ratio.naive.low],
                [ratio.naive.high],
                marker={"size": 10, "color": theme.LIGHT, "symbol": "circle-open"},
                text=[f"{ratio.naive.method}: {ratio.formatted_naive}"],
                **where,
            )
    primitives.label_rows(figure, ["mean", "median"], row=1, col=2)
    primitives.reference_line(figure, x=1, row=1, col=2)
    figure.update_xaxes(title="times", row=1, col=2)
