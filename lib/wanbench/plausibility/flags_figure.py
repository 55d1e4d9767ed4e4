"""Flags of the plausibility rules, as bars."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from ..figures import theme
from ..formatting import count

COLOURS = {"impossible": theme.OUTSIDE, "suspect": theme.WITHIN}


def flags_by_rule(flags: pd.DataFrame, *, note: str = "") -> go.Figure:
    """How many flags of each rule, by verdict."""
    counts = flags.groupby(["rule", "verdict"], as_index=False).size().rename(columns={"size": "n"})
    order = counts.groupby("rule").n.sum().sort_values().index.tolist()
    figure = go.Figure()
    for verdict, colour in COLOURS.items():
        part = counts[counts.verdict == verdict].set_index("rule").n.reindex(order)
        figure.add_bar(
            y=[theme.plain(rule) for rule in order],
            x=part.fillna(0),
            orientation="h",
            name=verdict,
            marker={"color": colour},
            hovertemplate="%{y}: %{x:,}<extra>" + verdict + "</extra>",
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title="flags (a region, column or table counts once, as each of its rows does)")
    totals = flags.verdict.value_counts()
    summary = ", ".join(f"{int(totals[verdict]):,} {verdict}" for verdict in COLOURS if verdict in totals)
    summary = summary or "none"
    return theme.finish(
        figure,
        name="flags-by-rule",
        title="Flags of the plausibility rules",
        subtitle=f"{count(len(flags), 'flag')}: {summary}.",
        alt=f"Bars of {count(len(flags), 'flag')} by rule: {summary}.",
        caption=f"Flags by plausibility rule ({summary}).",
        table=counts,
        note=note,
    )
