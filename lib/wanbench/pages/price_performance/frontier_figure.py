"""Cost against p99 with intervals in both, and the frontier of the means."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import primitives, theme

from .costs import COST
from .frontier import DOMINATED, FIRST, NOT_SHOWN, P99, Frontier

STYLES = {FIRST: (theme.WITHIN, "diamond"), NOT_SHOWN: (theme.UNKNOWN, "circle"), DOMINATED: (theme.OUTSIDE, "x")}


def frontier(result: Frontier, *, note: str = "") -> go.Figure:
    """A point per setting; bars are its intervals."""
    figure, rows = go.Figure(), result.rows
    first = rows[rows.verdict == FIRST].sort_values(COST)
    figure.add_scatter(
        x=first[COST], y=first[P99], mode="lines", name="frontier of the means", line=primitives.REFERENCE
    )
    for verdict, (shade, symbol) in STYLES.items():
        part = rows[rows.verdict == verdict]
        if len(part):
            figure.add_scatter(
                x=part[COST],
                y=part[P99],
                error_x=primitives.interval_bar(part[COST], part[f"{COST}_low"], part[f"{COST}_high"], color=shade),
                error_y=primitives.interval_bar(part[P99], part.p99_ms_low, part.p99_ms_high, color=shade),
                mode="markers+text",
                text=[theme.plain(name) for name in part.setting],
                textposition="top right",
                name=verdict,
                marker={"size": 11, "color": shade, "symbol": symbol},
                hovertemplate="%{text}: %{x:,.4g} USD, %{y:,.4g} ms<extra></extra>",
            )
    ends = {name: rows[[name, f"{name}_low", f"{name}_high"]].to_numpy().ravel() for name in (COST, P99)}
    figure.update_xaxes(title="USD per billion messages (log axis)", **theme.log_axis(ends[COST], ""))
    figure.update_yaxes(title="p99 from send to acknowledgement (log axis)", **theme.log_axis(ends[P99], "ms"))
    return theme.finish(
        figure,
        name="cost-against-p99",
        title="Cost against latency",
        subtitle="Left and below is better. Bars: intervals of each setting. Dominated: another is shown to be both "
        "cheaper and faster, all pairs together.",
        alt=f"Settings by cost and p99. {result}",
        caption=str(result),
        table=rows,
        note=note,
    )
