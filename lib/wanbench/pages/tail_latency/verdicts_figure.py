"""Ratios of the quantiles of two systems, with their verdicts."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .system_verdicts import VERDICTS, Verdicts

COLOURS = dict(zip(VERDICTS, (theme.WITHIN, theme.OUTSIDE, "#009E73", theme.UNKNOWN), strict=True))
SYMBOLS = dict(zip(VERDICTS, ("triangle-left", "triangle-right", "circle", "circle-open"), strict=True))


def verdicts(result: Verdicts, *, note: str = "") -> go.Figure:
    """The ratio of b over a in each row of the table, with its interval, and the margin within which it is tied."""
    rows = result.rows.reset_index(drop=True)
    figure = go.Figure()
    figure.add_vrect(x0=1 / (1 + result.margin), x1=1 + result.margin, fillcolor=primitives.BAND_COLOUR, line_width=0)
    primitives.reference_line(figure, x=1)
    for verdict in VERDICTS:
        part = rows[rows.verdict == verdict]
        if len(part):
            primitives.estimate_points(
                figure,
                part.index,
                [result.ratios[k] for k in part.index],
                marker={"color": COLOURS[verdict], "symbol": SYMBOLS[verdict], "size": 10},
                name=verdict,
            )
    primitives.label_rows(figure, [theme.plain(result.ratios[k].quantity.rpartition(", ")[0]) for k in rows.index])
    ends = rows[["ratio", "low", "high"]].to_numpy().ravel()
    axis = theme.log_axis([*ends, 1 / (1 + result.margin), 1 + result.margin], "")
    figure.update_xaxes(title=f"latency of {theme.plain(result.b)} over {theme.plain(result.a)} (log axis)", **axis)
    return theme.finish(
        figure,
        name="verdicts",
        title=f"Latency of {result.b} against {result.a}",
        subtitle=f"Ratios of typical trials with {percent(result.level)} intervals of each row; shaded: "
        "tied. Verdicts are simultaneous over all rows.",
        alt=f"Ratios of quantiles. {result.sentence}",
        caption=result.sentence,
        table=rows.drop(columns="verdict_alone"),
        note=note,
    )
