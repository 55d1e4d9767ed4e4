"""The price with each input at both ends of its range, the widest on top."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import label_rows, reference_line
from wanbench.formatting import number, quantity
from wanbench.methods.cost.inputs import MEASURED

from .tornado import Tornado, words

COLOURS = {MEASURED: theme.WITHIN, "range": theme.OUTSIDE}
BAR = 0.7
"""Share of a row's height; Plotly would widen bars next to another trace."""
NAMES = {MEASURED: "measured", "range": "price or assumption"}


def tornado(found: Tornado, *, note: str = "") -> go.Figure:
    """
    One bar per input, from the price at its low end to the price at its high end; dashed: every input at its value.
    """
    figure = go.Figure()
    rows = found.rows
    for kind, part in rows.groupby("kind", sort=False):
        figure.add_bar(
            y=part.index,
            x=(part.usd_at_high - part.usd_at_low).abs(),
            base=part[["usd_at_low", "usd_at_high"]].min(axis=1),
            orientation="h",
            width=BAR,
            marker={"color": COLOURS[kind]},
            name=NAMES[kind],
            hovertemplate="%{base:.4g} to %{x:.4g} USD<extra></extra>",
        )
    reference_line(figure, x=found.usd)
    label_rows(figure, [_label(row) for row in rows.itertuples()])
    figure.update_xaxes(title=f"USD per {found.per}")
    figure.update_layout(barmode="overlay", legend=theme.LEGEND_ON_TOP)
    return theme.finish(
        figure,
        name="cost-tornado",
        title="What the price depends on",
        subtitle="Each input moved over its own range, one at a time, all others at their values. "
        f"Dashed: {quantity(found.usd, 'USD')}.",
        alt=f"Bars of a {found.part} price, one per input. {found.sentence}",
        caption=found.sentence,
        table=rows,
        note=note,
    )


def _label(row) -> str:
    moved = f"{number(row.low)} to {number(row.high)} {row.unit}"
    return f"{theme.plain(words(row.input))}<br>{theme.plain(moved)}"
