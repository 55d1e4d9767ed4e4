"""Groups of cloud pairs at equal distance: their lines, and their differences."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, percent
from .clouds import BETWEEN, WITHIN, CloudComparison
from .fits_figure import POINTS, add_points

DASHES = {"one slope": "solid", "own slopes": "dot"}
MOST_IN_TWO_LINES, ROW_PX = 8, {False: 48, True: 26}
"""Rows whose labels have two lines, also in a file of 450 pixels; more have one line each."""
COLOURS = {WITHIN: theme.WITHIN, BETWEEN: theme.OUTSIDE}


def clouds_against_distance(found: CloudComparison, *, note: str = "") -> go.Figure:
    """Every unordered pair against distance, with the lines of pairs within one cloud and between clouds."""
    frame, ratio = found.sample.frame, found.difference.scale.ratio
    unit = "%{y:.3s}bit/s" if ratio else "%{y:.1f} ms"
    figure = go.Figure()
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>" + unit)
    ends = np.array([0.0, frame.distance_km.max() * 1.02])
    for line in found.lines.itertuples():
        height = line.height + line.slope * ends / 1000
        style = {"color": COLOURS[line.kind], "width": 2.5, "dash": DASHES[line.model]}
        figure.add_scatter(
            x=ends,
            y=10**height if ratio else height,
            mode="lines",
            name=f"{line.kind}, {line.model}",
            line=style,
            hoverinfo="skip",
        )
    figure.update_xaxes(title="great-circle distance (km)", range=ends, tickformat=",d")
    if ratio:
        figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(frame.value, "bit/s"))
    else:
        figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero")
    what = "Throughput" if ratio else "Round-trip time"
    basis = f"{count(found.sample.n_pairs, 'pair')} of {count(found.sample.n_regions, 'region')}"
    axis = " Vertical axis: logarithmic." if ratio else ""
    return theme.finish(
        figure,
        name=f"{'throughput' if ratio else 'rtt'}-within-and-between-clouds",
        title=f"{what} within and between clouds, against distance",
        subtitle=f"{POINTS}. Solid lines: one slope; dotted: a slope for each.{axis}",
        alt=f"Scatter of {what.lower()} against distance with lines for pairs {WITHIN} and {BETWEEN}. {found}",
        caption=f"{what} of {basis}. {found.difference.reported}",
        table=found.lines,
        note=note,
    )


def cloud_contrasts(found: CloudComparison, *, note: str = "") -> go.Figure:
    """Every contrast at equal distance with its interval by place, the naive one, and no difference as a line."""
    scale = found.difference.scale
    rows = found.all_contrasts
    figure = go.Figure()
    join = "over" if scale.ratio else "less"
    labels, dense = [], len(rows) > MOST_IN_TWO_LINES
    for at, each in enumerate(rows):
        low, middle, high = each.estimate.low, each.estimate.estimate, each.estimate.high
        naive = [each.estimate.naive.low, each.estimate.naive.high]
        how = ", own slopes" if each is found.difference_at_mean else ""
        names = [theme.plain(_short(name) if dense else name) for name in (each.one, each.other)]
        labels.append(f"{names[0]}{' ' if dense else '<br>'}{join} {names[1]}{how}")
        style = {"color": theme.LIGHT, "width": 6}
        figure.add_scatter(
            x=naive,
            y=[at + 0.2] * 2,
            mode="lines",
            line=style,
            name="naive",
            showlegend=at == 0,
            hoverinfo="skip",
        )
        style = {"color": theme.FIT, "width": 3}
        if np.isfinite([low, high]).all():
            figure.add_scatter(
                x=[low, high],
                y=[at, at],
                mode="lines",
                line=style,
                name=f"{percent(each.estimate.level)} interval by place",
                showlegend=at == 0,
                hoverinfo="skip",
            )
        figure.add_scatter(
            x=[middle],
            y=[at],
            mode="markers",
            marker={"color": theme.FIT, "size": 9},
            name="estimate",
            showlegend=at == 0,
            text=[
                f"{theme.plain(each.estimate.written)} {each.estimate.written_interval}<br>p = {each.p.written}"
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.add_vline(x=scale.nothing, line={"color": theme.MUTED, "dash": "dash", "width": 2})
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=labels, autorange="reversed", showgrid=False, zeroline=False
    )
    title = "ratio of throughput (log axis)" if scale.ratio else "difference of round-trip time (ms)"
    figure.update_xaxes(title=title)
    if scale.ratio:
        shown = [
            end for each in rows for end in (each.estimate.low, each.estimate.high, each.estimate.estimate)
        ]
        figure.update_xaxes(title=title, **theme.log_axis(shown, ""))
    if dense:
        figure.update_yaxes(tickfont={"size": 10})
        figure.update_layout(legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0})
    row_px = ROW_PX[dense]
    figure.update_layout(height=max(theme.HEIGHT_PX, 170 + row_px * len(rows)))
    what = "Throughput" if scale.ratio else "Round-trip time"
    return theme.finish(
        figure,
        name=f"{'throughput' if scale.ratio else 'rtt'}-by-clouds-at-equal-distance",
        title=f"{what} by pair of clouds, at equal distance",
        subtitle="Points: estimates; dark bars: intervals by place; grey bars: intervals that take pairs as "
        "independent. Dashed: no difference.",
        alt=f"Differences between groups of cloud pairs at equal distance. {found}",
        caption=" ".join(
            each.reported.sentence for each in (found.difference, *found.crossing, *found.directions)
        ),
        table=found.contrast_table(),
        note=note,
        headroom_px=24 if dense else 0,
    )


def _short(group: str) -> str:
    """
    A group of pairs in fewer words.

    >>> _short("between AWS and Google Cloud"), _short("between clouds"), _short("from Azure to AWS")
    ('AWS – Google Cloud', 'between clouds', 'from Azure to AWS')
    """
    one, both, other = group.removeprefix("between ").partition(" and ")
    return f"{one} – {other}" if both else group
