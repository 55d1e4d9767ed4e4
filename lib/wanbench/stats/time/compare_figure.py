"""Two arms: their values over time or by run, and how many times as much one is as the other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import percent, quantity
from .arms import Arm
from .compare import Comparison

SHADES = (theme.WITHIN, theme.OUTSIDE)
SYMBOLS = ("circle", "diamond")
MOST_POINTS = 2_000
HEADROOM_PX = 24
AXES = {"series": "value, in order of time", "runs": "run", "blocks": "block"}


def comparison(found: Comparison, *, note: str = "") -> go.Figure:
    """Left the arms: every value of a series, or the mean of every run or block; right the two ratios."""
    kind = found.unit_of_replication
    figure = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.62, 0.38],
        horizontal_spacing=0.14,
        subplot_titles=["what was measured", f"{theme.plain(found.b.name)} over {theme.plain(found.a.name)}"],
    )
    frames = []
    for arm, shade, symbol in zip((found.a, found.b), SHADES, SYMBOLS, strict=True):
        x, y = _points(arm, kind)
        shown = slice(None, None, max(1, len(x) // MOST_POINTS))
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
        figure.add_scatter(**line, name=f"mean {quantity(arm.mean, found.unit)}", row=1, col=1)
        frames.append(pd.DataFrame({"arm": arm.name, AXES[kind].partition(",")[0]: x, "measured": y}))
    figure.update_xaxes(title=AXES[kind], row=1, col=1)
    unit = f" ({found.unit})" if found.unit else ""
    figure.update_yaxes(title=theme.plain(f"{found.value}{unit}"), rangemode="tozero", row=1, col=1)
    _ratios(figure, found)
    level = percent(found.means.level)
    return theme.finish(
        figure,
        name="two-arms",
        title=f"{found.b.name} against {found.a.name}: {found.value}",
        subtitle=f"Right: ratio with its {level} interval ({found.means.basis}); hollow: the interval if every "
        "value were independent. Dashed: no difference.",
        alt=f"Two arms compared. {found}",
        caption=found.wording(),
        table=pd.concat(frames, ignore_index=True),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _points(arm: Arm, kind: str) -> tuple[np.ndarray, np.ndarray]:
    if kind == "series":
        return np.arange(1, len(arm.values) + 1), arm.values
    groups = arm.runs if kind == "runs" else [arm.blocks[name] for name in sorted(arm.blocks, key=str)]
    return np.arange(1, len(groups) + 1), np.array([group.mean() for group in groups])


def _ratios(figure: go.Figure, found: Comparison) -> None:
    rows = [("mean", found.means), ("median", found.medians)]
    for row, (_, each) in enumerate(rows):
        for offset, ends, marker in (
            (0.0, (each.low, each.high), {"size": 12, "color": theme.FIT}),
            (
                0.18,
                (each.naive.low, each.naive.high),
                {"size": 10, "color": theme.LIGHT, "symbol": "circle-open"},
            ),
        ):
            known = np.isfinite(ends).all()
            if offset and not known:
                continue
            bar = {"type": "data", "symmetric": False, "thickness": 2, "width": 6, "color": marker["color"]}
            bar |= {"array": [ends[1] - each.estimate], "arrayminus": [each.estimate - ends[0]]}
            figure.add_scatter(
                x=[each.estimate],
                y=[row + offset],
                mode="markers",
                marker=marker,
                error_x=bar if known else None,
                hovertemplate=f"{each.written} ({each.written_interval or 'no interval'})<extra></extra>",
                showlegend=False,
                row=1,
                col=2,
            )
    ticks = {"tickvals": list(range(len(rows))), "ticktext": [name for name, _ in rows], "range": [1.6, -0.6]}
    figure.update_yaxes(**ticks, zeroline=False, row=1, col=2)
    figure.update_xaxes(title="times", row=1, col=2)
    figure.add_vline(x=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=2)
