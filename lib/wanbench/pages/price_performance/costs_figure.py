"""Messages per second and cost per billion of them, by setting."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import primitives, theme

from .costs import COST, RATE, SizeCosts

PANELS = {RATE: "messages per second", COST: "USD per billion messages"}


def costs(result: SizeCosts, *, note: str = "") -> go.Figure:
    """A row per setting, the cheapest first; small points are trials, bars intervals."""
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=list(PANELS.values())
    )
    names = list(result.costs.settings)
    at = {name: k for k, name in enumerate(names)}
    for column, response in enumerate(PANELS, 1):
        each = result.rates if response == RATE else result.costs
        figure.add_scatter(
            x=result.trials[response],
            y=result.trials.setting.map(at).to_numpy() + theme.spread(len(result.trials), 0.3),
            mode="markers",
            name="trials",
            showlegend=column == 1,
            marker={"size": 6, "color": theme.LIGHT, "opacity": 0.7},
            hovertemplate="one trial: %{x:,.4g}<extra></extra>",
            row=1,
            col=column,
        )
        primitives.estimate_points(
            figure,
            list(range(len(names))),
            [each.means[name] for name in names],
            marker={"size": 10, "color": theme.FIT, "symbol": "diamond"},
            name="geometric mean",
            showlegend=column == 1,
            row=1,
            col=column,
        )
        figure.update_xaxes(title=PANELS[response], rangemode="tozero", row=1, col=column)
        primitives.label_rows(figure, [theme.plain(name) for name in names], row=1, col=column)
    return theme.finish(
        figure,
        name="cost-per-billion",
        title="What a billion messages cost",
        subtitle="Small points: trials. Bars: intervals of a setting, from the scatter pooled over "
        "all. The table shows whether two sizes differ: their trials are compared block by "
        "block.",
        alt=f"Rates and costs by setting. {result}",
        caption=str(result),
        table=result.table(),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )
