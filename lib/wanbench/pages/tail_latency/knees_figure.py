"""The curve of each system, its knee, and the rate that its links allow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.methods.tails import quantile_intervals as order

from .knees import Knees
from .side_by_side_figure import DASHES, SYMBOLS
from .trials import RATE


def knees(result: Knees, *, note: str = "") -> go.Figure:
    """A typical trial's percentile against the rate; diamonds: knees with their intervals; dashed: what links allow."""
    figure, tables = go.Figure(), []
    for k, (name, one) in enumerate(result.knees.items()):
        shade, table = theme.SERIES_COLOURS[k], result.curves[name].table(one.knee.level)
        tables.append(table.assign(system=name))
        primitives.interval_points(
            figure,
            table[RATE],
            table.latency_ms,
            table.low_ms,
            table.high_ms,
            marker={"size": 8, "color": shade, "symbol": SYMBOLS[k]},
            vertical=True,
            name=theme.plain(name),
        )
        figure.data[-1].update(mode="lines+markers", line={"color": shade, "dash": DASHES[k], "width": 1.5})
        if np.isfinite(one.knee.estimate):
            primitives.estimate_points(
                figure,
                [one.level_ms],
                [one.knee],
                marker={"size": 15, "color": shade, "symbol": "diamond-open", "line": {"width": 3}},
                name=theme.plain(f"knee of {name}"),
            )
        if name in result.links:
            label = {"annotation_text": theme.plain(f"links: {name}"), "annotation_font_size": 11}
            line = {"color": shade, "dash": "dot", "width": 2}
            primitives.reference_line(figure, x=result.links[name].estimate, line=line, **label)
    values = np.concatenate([table.latency_ms for table in tables])
    figure.update_yaxes(**theme.log_axis(values[np.isfinite(values)], "ms"))
    p = order.name(next(iter(result.knees.values())).curve.q)
    figure.update_yaxes(title=f"{p} of a typical trial (ms, log axis)")
    figure.update_xaxes(title="requested records/s, all producers together", rangemode="tozero")
    figure.update_layout(legend={"orientation": "h", "y": -0.2})
    return theme.finish(
        figure,
        name="knees",
        title="Where latency begins to rise",
        subtitle="Diamonds: the knee with its interval, at the level before it. Dotted: where a link is full.",
        alt=f"{p} against the rate for each system. {result.sentence}",
        caption=str(result),
        table=pd.concat(tables, ignore_index=True),
        note=note,
    )
