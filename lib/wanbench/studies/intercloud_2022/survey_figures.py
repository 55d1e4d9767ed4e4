"""Figures of what is asked of somebody else's survey: readings, variants, repeats, scatter, nearest regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, percent
from ...stats.result import Estimate
from .matched import Matched
from .nearest import NEARLY, Nearest
from .repeats import Repeats
from .scatter import Scatter
from .unit_readings import Readings
from .variants import QUANTITIES, Variants

ROW_PX = 30
BOUND = {"color": theme.MUTED, "dash": "dash", "width": 2}
DOT = {"color": theme.FIT, "size": 9}


def variants(found: Variants, *, note: str = "") -> go.Figure:
    """The correlation with distance under each reading, with its interval, and the claimed one."""
    rows = found.table()
    figure = _dots(rows.reading, rows.r_pairs, rows.low, rows.high, "over unordered pairs")
    marker = {"color": theme.OUTSIDE, "size": 10, "symbol": "diamond-open", "line": {"width": 2}}
    figure.add_scatter(x=rows.r_rows, y=_places(rows), mode="markers", marker=marker, name="over rows")
    _bound(figure, found.claimed, f"claimed: {found.claimed:g}")
    figure.update_xaxes(title=f"correlation of {QUANTITIES[found.quantity]} with distance (Pearson r)")
    return theme.finish(
        figure,
        name=f"correlation-by-reading-{found.quantity.partition('_')[0]}",
        title=f"{QUANTITIES[found.quantity]} against distance: the correlation by reading",
        subtitle="Filled: over unordered pairs, bar: 95 % interval by place. Open: over rows as they stand.",
        alt=f"Correlations with distance under {count(len(rows), 'reading')} of the same rows. {found}",
        caption=str(found),
        table=rows,
        note=note,
    )


def repeated(found: Repeats, *, note: str = "") -> go.Figure:
    """How far two tests of one ordered pair differ: the share of pairs that differ by no more than a factor."""
    factor = np.sort(found.pairs.factor.to_numpy())
    share = np.arange(1, len(factor) + 1) / len(factor)
    figure = go.Figure()
    figure.add_scatter(
        x=factor, y=share, mode="lines", line={"color": theme.FIT, "shape": "hv", "width": 2.5}
    )
    figure.update_xaxes(
        title="greater over lesser of the tests of a pair (times, log axis)", **theme.log_axis(factor, "")
    )
    figure.update_yaxes(title="share of the repeated pairs", range=[0, 1.02], tickformat=".0%")
    what = found.factor.quantity.rpartition(", ")[2].replace("_", "-")
    return theme.finish(
        figure,
        name=f"repeated-tests-{what}",
        title=f"Two tests of one ordered pair: {what}",
        subtitle="Share of the ordered pairs tested more than once whose tests differ by no more than this factor.",
        alt=f"Cumulative share of pairs over the factor between repeated tests. {found}",
        caption=f"{count(len(found.pairs), 'ordered pair')} tested more than once. {found.factor.sentence}",
        table=found.pairs,
        note=note,
    )


def scattered(found: Scatter, *, note: str = "") -> go.Figure:
    """By what factor a pair misses its line: RTT beside throughput."""
    both: Sequence[Estimate] = (found.rtt, found.throughput)
    frame = pd.DataFrame([each.row() for each in both])
    figure = _dots(["RTT", "throughput"], frame.estimate, frame.low, frame.high, "median pair")
    _bound(figure, 1.0, "on the line")
    figure.update_xaxes(title="factor by which a pair misses its line (times)")
    return theme.finish(
        figure,
        name="scatter-about-lines",
        title="How far pairs lie from their line on distance",
        subtitle=f"Dots: the median pair; bars: {percent(found.rtt.level)} intervals by place.",
        alt=f"Two factors with intervals. {found}",
        caption=found.ratio.sentence,
        table=frame,
        note=note,
    )


def nearest_targets(found: Nearest, *, note: str = "") -> go.Figure:
    """Per source and target cloud: throughput to the nearest region over the best, against the distance to it."""
    figure = go.Figure()
    for cloud, part in found.sources.groupby("to_cloud"):
        texts = [
            f"{theme.plain(row.from_region)}: nearest {theme.plain(row.nearest)}, best {theme.plain(row.best)}"
            for row in part.itertuples()
        ]
        figure.add_scatter(
            x=part.nearest_km,
            y=part.relative,
            mode="markers",
            marker={"color": theme.colour(cloud), "size": 9, "opacity": 0.8},
            name=f"to {theme.cloud_name(cloud)}",
            text=texts,
            hovertemplate="%{text}<br>%{y:.0%}<extra></extra>",
        )
    figure.add_hline(y=NEARLY, line=BOUND)
    figure.update_xaxes(
        title="distance to the nearest region of the other cloud (km)", tickformat=",d", rangemode="tozero"
    )
    figure.update_yaxes(title="its throughput over the best", range=[0, 1.05], tickformat=".0%")
    return theme.finish(
        figure,
        name="nearest-region",
        title="Is the nearest region of the other cloud the fastest?",
        subtitle=f"One point per source region and target cloud. Dashed: {percent(NEARLY)} of the best.",
        alt=f"Throughput to the nearest target over the best one, against distance. {found}",
        caption=found.share.sentence,
        table=found.sources,
        note=note,
    )


def matched_cities(found: Matched, *, note: str = "") -> go.Figure:
    """Per pair of cities: the mean of both pairs between the clouds against the mean within them."""
    unit, ratio = ("bit/s", True) if "throughput" in found.difference.quantity else ("ms", False)
    figure = go.Figure()
    texts = [f"{theme.plain(row.city_a)} – {theme.plain(row.city_b)}" for row in found.pairs.itertuples()]
    figure.add_scatter(
        x=found.pairs.within,
        y=found.pairs.between,
        mode="markers",
        marker=DOT,
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        name="pair of cities",
    )
    both = found.pairs[["within", "between"]]
    ends = [float(both.min().min()), float(both.max().max())]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=BOUND, name="no difference", hoverinfo="skip")
    what = "throughput" if ratio else "round-trip time"
    axis = theme.log_axis(ends, unit) if ratio else {}
    figure.update_xaxes(title=f"{what} within the clouds ({unit})", **axis)
    figure.update_yaxes(title=f"{what} between the clouds ({unit})", **axis)
    return theme.finish(
        figure,
        name=f"matched-cities-{what.replace(' ', '-')}",
        title=f"The same cities, within and between clouds: {what}",
        subtitle="One point per pair of cities in which both clouds are. Dashed: no difference.",
        alt=f"Scatter of {what} between clouds against within one over the same pairs of cities. {found}",
        caption=found.difference.sentence,
        table=found.pairs,
        note=note,
    )


def column_meanings(found: Readings, *, note: str = "") -> go.Figure:
    """The greatest rate of each sender under each reading, against what its instance can send."""
    figure = go.Figure()
    senders = list(dict.fromkeys(found.rows.sender))
    for sender in senders:
        part = found.rows[found.rows.sender == sender]
        figure.add_bar(
            y=[theme.plain(name) for name in part.reading],
            x=part.share_of_limit,
            orientation="h",
            name=f"from {theme.cloud_name(sender)}",
            marker={"color": theme.colour(sender)},
            hovertemplate="%{y}<br>%{x:.2f} times the limit<extra></extra>",
        )
    figure.add_vline(x=1.0, line=BOUND)
    figure.update_xaxes(
        title="greatest rate over the instance's limit (times, log axis)",
        **theme.log_axis([*found.rows.share_of_limit, 0.5, 1], ""),
    )
    figure.update_yaxes(autorange="reversed")
    return theme.finish(
        figure,
        name=f"column-readings-{found.column.lower().replace('_', '-')}",
        title=f"What {theme.plain(found.column)} can mean",
        subtitle="Bars: the greatest value of each sender, read in each unit. Right of the dashed line it cannot be.",
        alt=f"Greatest rates over the limits of the senders' instances. {found}",
        caption=str(found),
        table=found.rows,
        note=note,
    )


def _places(rows) -> np.ndarray:
    return np.arange(len(rows))


def _dots(labels, values, lows, highs, name: str) -> go.Figure:
    """One row per label: the value and its interval, the first on top."""
    values, lows, highs = (np.asarray(each, dtype=float) for each in (values, lows, highs))
    bar = {"type": "data", "symmetric": False, "color": theme.FIT, "thickness": 2, "width": 5}
    bar |= {"array": np.nan_to_num(highs - values), "arrayminus": np.nan_to_num(values - lows)}
    figure = go.Figure()
    figure.add_scatter(x=values, y=_places(values), mode="markers", marker=DOT, error_x=bar, name=name)
    figure.update_yaxes(
        tickvals=_places(values),
        ticktext=[theme.plain(label) for label in labels],
        autorange="reversed",
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(height=max(theme.HEIGHT_PX - 160, 200 + ROW_PX * len(values)))
    return figure


def _bound(figure: go.Figure, value: float, text: str) -> None:
    figure.add_vline(x=value, line=BOUND, annotation_text=theme.plain(text), annotation_position="top")
