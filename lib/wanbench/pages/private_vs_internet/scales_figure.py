"""Two links at several scales: the ratio at each, and how full the link was."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .scales import Scales, label


def scales(result: Scales, *, note: str = "") -> go.Figure:
    """Left: the ratio of the links at each scale, pairs small; right: link utilisation."""
    titles = ["ratio at each scale", "link utilisation (share of its rate)"]
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.14, subplot_titles=titles)
    left, right = {"row": 1, "col": 1}, {"row": 1, "col": 2}
    labels = [label(rate) for rate in result.comparisons]
    ratios = [links.ratio for links in result.comparisons.values()]
    for k, links in enumerate(result.comparisons.values()):
        figure.add_scatter(
            x=k + 0.14 + theme.spread(len(links.pairs), 0.1),
            y=links.pairs.ratio,
            mode="markers",
            marker={"size": 6, "color": theme.LIGHT, "opacity": 0.6},
            hovertemplate="one pair: %{y:.3g} times<extra></extra>",
            showlegend=False,
            **left,
        )
    marker, columns = {"size": 12, "color": theme.FIT}, range(len(ratios))
    primitives.estimate_points(figure, columns, ratios, marker=marker, vertical=True, showlegend=False, **left)
    marks = theme.arm_marks(result.utilisation.link)
    for k, (name, part) in enumerate(result.utilisation.groupby("link", sort=False)):
        shade, symbol = marks[str(name)]
        mean = part.mean_utilisation
        primitives.interval_points(
            figure,
            [list(result.comparisons).index(rate) + 0.08 * (2 * k - 1) for rate in part.rate_bps],
            mean,
            mean,
            part.max_utilisation,
            marker={"size": 11, "color": shade, "symbol": symbol},
            vertical=True,
            name=theme.plain(name),
            **right,
        )
    for panel in (left, right):
        primitives.reference_line(figure, y=1, **panel)
    ticks = {"tickvals": list(range(len(labels))), "ticktext": labels, "range": [-0.5, len(labels) - 0.5]}
    figure.update_xaxes(title="rate of the link", **ticks)
    figure.update_yaxes(title="times", rangemode="tozero", **left)
    most = max(1.0, *result.utilisation.max_utilisation.fillna(0.0))
    figure.update_yaxes(tickformat=".0%", range=[0, 1.08 * most], **right)
    level = percent(ratios[0].level)
    return theme.finish(
        figure,
        name="scales",
        title="The same comparison at several scales of the link",
        subtitle=f"Left: the ratio with its {level} interval (large), single pairs (small). Right: mean "
        "over trials towards the brokers, background and headers included; bars reach the "
        "fullest trial. Dashed: no difference; full link.",
        alt=f"Ratios by scale. {result}",
        caption=f"{result.verdict} {result.capacity_sentence}",
        table=result.table(),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )
