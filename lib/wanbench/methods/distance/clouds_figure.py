"""Differences between groups of cloud pairs at equal distance."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .clouds import CloudComparison

MAX_TWO_LINE_ROWS = 8
"""More rows than this would overlap in a file of 450 pixels if their labels had two lines."""
TWO_LINE_ROW_PX = 48
ONE_LINE_ROW_PX = 26


def cloud_contrasts(comparison: CloudComparison, *, note: str = "") -> go.Figure:
    """Every contrast at equal distance with its interval by place, the naive one, and no difference as a line."""
    scale, contrasts = comparison.difference.scale, comparison.all_contrasts
    estimates = [contrast.estimate for contrast in contrasts]
    dense = len(contrasts) > MAX_TWO_LINE_ROWS
    join = f"{' ' if dense else '<br>'}{'over' if scale.ratio else 'less'} "
    labels = []
    for contrast in contrasts:
        names = [theme.plain(_short(name) if dense else name) for name in (contrast.one, contrast.other)]
        slopes = ", own slopes" if contrast is comparison.difference_at_mean else ""
        labels.append(join.join(names) + slopes)
    rows = np.arange(len(contrasts))
    level = percent(estimates[0].level)
    figure = go.Figure()
    _add_bars(figure, rows + 0.2, [each.naive for each in estimates], "naive", theme.LIGHT, 6)
    _add_bars(figure, rows, estimates, f"{level} interval by place", theme.FIT, 3)
    figure.add_scatter(
        x=[each.estimate for each in estimates],
        y=rows,
        mode="markers",
        marker={"color": theme.FIT, "size": 9},
        name="estimate",
        text=[
            f"{theme.plain(contrast.estimate.formatted)} {contrast.estimate.formatted_interval}<br>p = {contrast.p.formatted}"
            for contrast in contrasts
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    primitives.reference_line(figure, x=scale.nothing)
    figure.update_yaxes(tickvals=rows, ticktext=labels, autorange="reversed", showgrid=False, zeroline=False)
    figure.update_xaxes(title="difference of round-trip time (ms)")
    if scale.ratio:
        shown = [end for each in estimates for end in (each.low, each.high, each.estimate)]
        figure.update_xaxes(title="ratio of throughput (log axis)", **theme.log_axis(shown, ""))
    if dense:
        figure.update_yaxes(tickfont={"size": 10})
        figure.update_layout(legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0})
    row_px = ONE_LINE_ROW_PX if dense else TWO_LINE_ROW_PX
    figure.update_layout(height=max(theme.HEIGHT_PX, 170 + row_px * len(contrasts)))
    what = "Throughput" if scale.ratio else "Round-trip time"
    return theme.finish(
        figure,
        name=f"{'throughput' if scale.ratio else 'rtt'}-by-clouds-at-equal-distance",
        title=f"{what} by pair of clouds, at equal distance",
        subtitle="Points: estimates; dark bars: intervals by place; grey bars: intervals that take pairs as "
        "independent. Dashed: no difference.",
        alt=f"Differences between groups of cloud pairs at equal distance. {comparison.sentence}",
        caption=comparison.sentence,
        table=comparison.table(),
        note=note,
        headroom_px=24 if dense else 0,
    )


def _add_bars(figure: go.Figure, rows: np.ndarray, intervals, name: str, colour: str, width: int) -> None:
    """A bar per interval in one trace: a NaN after each pair of ends breaks the line."""
    figure.add_scatter(
        x=np.array([(each.low, each.high, np.nan) for each in intervals]).ravel(),
        y=np.repeat(rows, 3),
        mode="lines",
        line={"color": colour, "width": width},
        name=name,
        hoverinfo="skip",
    )


def _short(group: str) -> str:
    """
    A short label of a group of pairs.

    >>> _short("between AWS and Google Cloud"), _short("between clouds"), _short("from Azure to AWS")
    ('AWS – Google Cloud', 'between clouds', 'from Azure to AWS')
    """
    one, both, other = group.removeprefix("between ").partition(" and ")
    return f"{one} – {other}" if both else group
