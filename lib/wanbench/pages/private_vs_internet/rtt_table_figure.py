"""Round-trip times as in ping's summary: runs, their means with intervals, and the published numbers."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .rtt_table import PUBLISHED, STATISTICS, RttTable

OFFSET = 0.13
"""Offset of a setting from the middle of its statistic."""


def rtt_table(result: RttTable, *, note: str = "") -> go.Figure:
    """Per statistic and setting every run, their mean with its interval, and the published number as a line."""
    figure = go.Figure()
    marks = theme.arm_marks(result.settings)
    for k, setting in enumerate(result.settings):
        shade, symbol = marks[setting]
        runs = result.runs[result.runs.setting == setting]
        side = OFFSET * (2 * k - len(result.settings) + 1)
        for at, (statistic, (column, _)) in enumerate(STATISTICS.items()):
            figure.add_scatter(
                x=at + side + 0.06 + theme.spread(len(runs), 0.06),
                y=runs[column],
                mode="markers",
                marker={"size": 5, "color": shade, "opacity": 0.45},
                hovertemplate="one run: %{y:.2f} ms<extra></extra>",
                showlegend=False,
            )
            printed = PUBLISHED.get(setting, {}).get(statistic)
            if printed:
                figure.add_scatter(
                    x=[at + side - 0.09, at + side + 0.09],
                    y=[printed] * 2,
                    mode="lines",
                    line={"color": shade, "width": 2, "dash": "dot"},
                    name=f"{theme.plain(setting)}, as the source printed",
                    showlegend=at == 0,
                    hovertemplate="published: %{y} ms<extra></extra>",
                )
        numbers = [result.numbers[setting, name] for name in STATISTICS]
        primitives.estimate_points(
            figure,
            [at + side for at in range(len(STATISTICS))],
            numbers,
            marker={"size": 11, "color": shade, "symbol": symbol},
            vertical=True,
            name=theme.plain(setting),
        )
    figure.update_xaxes(tickvals=list(range(len(STATISTICS))), ticktext=[f"RTT {name}" for name in STATISTICS])
    published = [value for name in result.settings for value in PUBLISHED.get(name, {}).values()]
    shown = result.runs[[column for column, _ in STATISTICS.values()]].to_numpy().ravel()
    figure.update_yaxes(title="ms (log axis)", **theme.log_axis([*shown, *published], ""))
    level = percent(result.estimates[0].level)
    return theme.finish(
        figure,
        name="rtt-table",
        title="Round-trip times of pings",
        subtitle=f"Large: mean over runs, bars: its {level} interval; small: one run; dotted: the source.",
        alt=f"Round-trip times per setting. {result}",
        caption=str(result),
        table=result.table(),
        note=note,
    )
