"""Two links at several scales: the ratio at each, and how full the link was."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import percent
from .scales import Scales, label

SHADES, SYMBOLS = (theme.OUTSIDE, theme.WITHIN), ("diamond", "circle")
HEADROOM_PX = 24


def scales(result: Scales, *, note: str = "") -> go.Figure:
    """Left the ratio of either link at each scale, pairs small; right the part of the link's rate in use."""
    figure = make_subplots(
        rows=1,
        cols=2,
        horizontal_spacing=0.14,
        subplot_titles=["ratio at each scale", "part of the link's rate in use"],
    )
    labels = [label(rate) for rate in result.comparisons]
    for k, each in enumerate(result.comparisons.values()):
        figure.add_scatter(
            x=k + 0.14 + theme.spread(len(each.pairs), 0.1),
            y=each.pairs.ratio,
            mode="markers",
            marker={"size": 6, "color": theme.LIGHT, "opacity": 0.6},
            hovertemplate="one pair: %{y:.3g} times<extra></extra>",
            showlegend=False,
            row=1,
            col=1,
        )
    ratios = [each.ratio for each in result.comparisons.values()]
    known = all(np.isfinite(each.low) for each in ratios)
    bar = {
        "type": "data",
        "symmetric": False,
        "array": [each.high - each.estimate for each in ratios],
        "arrayminus": [each.estimate - each.low for each in ratios],
        "thickness": 2,
        "width": 8,
    }
    figure.add_scatter(
        x=list(range(len(ratios))),
        y=[each.estimate for each in ratios],
        mode="markers",
        marker={"size": 12, "color": theme.FIT},
        error_y=bar if known else None,
        text=[f"{each.written} ({each.written_interval or 'no interval'})" for each in ratios],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
    figure.add_hline(y=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=1)
    for k, (name, part) in enumerate(result.utilisation.groupby("link", sort=False)):
        figure.add_scatter(
            x=[list(result.comparisons).index(each) + 0.08 * (2 * k - 1) for each in part.rate_bps],
            y=part.mean_utilisation,
            mode="markers",
            name=theme.plain(name),
            marker={"size": 11, "color": SHADES[k % 2], "symbol": SYMBOLS[k % 2]},
            error_y={"type": "data", "symmetric": False, "array": part.max_utilisation - part.mean_utilisation,
                     "arrayminus": [0.0] * len(part), "width": 6},
            row=1,
            col=2,
        )  # fmt: skip
    figure.add_hline(y=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=2)
    ticks = {"tickvals": list(range(len(labels))), "ticktext": labels, "range": [-0.5, len(labels) - 0.5]}
    figure.update_xaxes(title="rate of the link", **ticks)
    figure.update_yaxes(title="times", rangemode="tozero", row=1, col=1)
    most = max(1.0, *result.utilisation.max_utilisation.fillna(0.0))
    figure.update_yaxes(tickformat=".0%", range=[0, 1.08 * most], row=1, col=2)
    level = percent(ratios[0].level)
    return theme.finish(
        figure,
        name="scales",
        title="The same comparison at several scales of the link",
        subtitle=f"Left: large the ratio with its {level} interval, small a pair each. Right: mean of trials towards "
        "the brokers, background and headers included, bars up to the fullest trial. Dashed: no difference; full.",
        alt=f"Ratios by scale. {result}",
        caption=f"{result.verdict} {result.capacity_sentence}",
        table=result.table(),
        note=note,
        headroom_px=HEADROOM_PX,
    )
