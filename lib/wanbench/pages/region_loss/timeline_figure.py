"""The article's three tables over time: leaders, in-sync replicas, assignment; and the clients' rates."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme

from .timeline import Timeline

TITLES = (
    "partitions led by each broker",
    "partitions with all replicas in sync",
    "partitions assigned to the consumers of each region",
    "acknowledgements per second to the producers of each region",
    "receipts per second by the consumers of each region",
)


def timeline(result: Timeline, *, note: str = "") -> go.Figure:
    """Five panels on one time axis, the fault shaded."""
    figure = make_subplots(5, 1, shared_xaxes=True, vertical_spacing=0.05, subplot_titles=TITLES)
    regions = sorted(set(result.rates.region) | set(result.group.region))
    shades = {name: theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)] for k, name in enumerate(regions)}
    for k, (broker, own) in enumerate(result.leaders.groupby("broker")):
        dash = ("solid", "dash", "dot")[k % 3]
        line = {"color": theme.TEXT if k < 3 else theme.MUTED, "dash": dash, "shape": "hv"}
        _line(figure, 1, own.at_s, own.partitions, f"broker {broker:.0f}", line, legendgroup="brokers", showlegend=True)
    _line(
        figure,
        2,
        result.replicas.at_s,
        result.replicas.full,
        "all replicas in sync",
        {"color": theme.TEXT, "shape": "hv"},
    )
    for region, own in result.group.groupby("region"):
        name = theme.plain(region)
        _line(figure, 3, own.at_s, own.partitions, name, {"color": shades[region], "shape": "hv"}, legendgroup=name)
    for row, kind in ((4, "writes"), (5, "reads")):
        of_kind = result.rates[result.rates.kind == kind]
        for region, own in of_kind.groupby("region"):
            name = theme.plain(region)
            line = {"color": shades[region], "width": 3 if region in result.episode.hit else 1.5}
            _line(figure, row, own.at_s, own.per_s, name, line, legendgroup=name, showlegend=row == 4)
    figure.add_vrect(x0=0, x1=result.heal_s, fillcolor=theme.OUTSIDE, opacity=0.1, line_width=0)
    figure.update_xaxes(title="time since the fault was ordered (s)", row=5, col=1)
    figure.update_yaxes(rangemode="tozero")
    figure.update_annotations(font_size=13)
    figure.update_layout(height=900, legend={"orientation": "h", "y": -0.08})
    return theme.finish(
        figure,
        name=f"timeline-{stem(result.episode.setting)}",
        title=f"“{result.episode.setting}” over time",
        subtitle="Shaded: from the order to begin the fault to the order to heal it. Thick: the region that is hit. "
        "Rates are those of the second before. Leaders, replicas and group as seen from one region outside.",
        alt=f"Five timelines around a fault. {result}",
        caption=str(result),
        table=result.table(),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _line(figure, row, x, y, name, line, **more):
    style = {
        "mode": "lines",
        "name": name,
        "line": line,
        "hovertemplate": "%{x:.1f} s: %{y:.0f}<extra>" + name + "</extra>",
    }
    figure.add_scatter(x=x, y=y, row=row, col=1, **style | {"showlegend": False} | more)


def stem(text: str) -> str:
    """
    A file name.

    >>> stem("cut at aws:us-east-1")
    'cut-at-aws-us-east-1'
    """
    return "-".join("".join(each if each.isalnum() and each.isascii() else " " for each in text.lower()).split())
