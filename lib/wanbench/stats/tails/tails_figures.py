"""Tails of latencies: the percentile plot, and latency over time."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ...errors import ParameterError
from ...figures import theme
from ...formatting import count, percent
from . import order_statistics as order
from .latencies import Quantiles

SHADES = (theme.WITHIN, theme.OUTSIDE, "#009E73", "#6B0F1A", "#882288", "#D9A300")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST_POINTS = 2_000


def percentiles(series: Sequence[Quantiles], *, note: str = "") -> go.Figure:
    """
    Latency against the share of records that took longer, on a logarithmic axis of nines, several distributions.

    Lines are the whole distributions; points are the quantiles with their intervals, arrows those that are open.
    """
    if not series:
        raise ParameterError("a percentile plot takes at least one distribution")
    figure, frames = go.Figure(), []
    for k, each in enumerate(series):
        shade, dash, tail = SHADES[k % len(SHADES)], DASHES[k % len(DASHES)], each.tail
        x, y = _curve(tail)
        label = f"{theme.plain(tail.name)} ({count(tail.n, 'record')})"
        line = {"color": shade, "dash": dash, "width": 2, "shape": "hv"}
        figure.add_scatter(x=x, y=y, mode="lines", name=label, line=line, legendgroup=str(k))
        known = [(q, c) for q, c in zip(each.quantiles, each.estimates, strict=True) if isfinite(c.estimate)]
        _points(figure, known, shade, k)
        rows = [(tail.name, q, c.estimate, c.low, c.high) for q, c in known]
        frames.append(pd.DataFrame(rows, columns=["of", "quantile", "latency_ms", "low_ms", "high_ms"]))
    nines = max(1, max(floor(log10(each.tail.n)) for each in series))
    ticks = [0.5, *(10.0**-k for k in range(1, nines + 1))]
    figure.update_xaxes(
        type="log",
        range=[log10(0.7), log10(min(ticks)) - 0.15],
        tickvals=ticks,
        ticktext=[order.name(1 - tick) for tick in ticks],
        title="records that took at most so long (log axis of the rest)",
    )
    every = np.concatenate(
        [frame[["latency_ms", "low_ms", "high_ms"]].to_numpy().ravel() for frame in frames]
    )
    figure.update_yaxes(**theme.log_axis(every, "ms"), title="latency (ms, log axis)")
    level = percent(series[0].estimates[0].level)
    names = " and ".join(each.tail.name for each in series)
    return theme.finish(
        figure,
        name="tails",
        title=f"How long records took: {names}",
        subtitle=f"Points: quantiles with their {level} intervals, triangles where there is no upper limit.",
        alt=f"Percentile plot of latencies. {' '.join(each.estimates[-1].sentence for each in series)}",
        caption=" ".join(contrast.sentence for each in series for contrast in each.estimates),
        table=pd.concat(frames, ignore_index=True),
        note=note,
    )


def one(found: Quantiles, *, note: str = "") -> go.Figure:
    """The percentile plot of one distribution."""
    return percentiles([found], note=note)


def both(comparison, *, note: str = "") -> go.Figure:
    """The percentile plot of the two distributions of a comparison."""
    return percentiles([comparison.a, comparison.b], note=note or comparison.sentence)


def over_time(
    records: pd.DataFrame, *, group: int = 0, title: str = "Latency over time", note: str = ""
) -> go.Figure:
    """
    A probe's latencies by intended send time: every first receipt, and crosses for records that never came.

    `records` is table probe_records. Of many records every so-manyth is drawn, and all of the slowest.
    """
    seen = records[(records.group == group).fillna(False) & ~records.duplicate & records.latency_ms.notna()]
    if seen.empty:
        raise ParameterError(f"no record of group {group} has a latency")
    never = records[~records.sequence.isin(seen.sequence)].drop_duplicates("sequence")
    start_s = records.intended_at_s.min()
    slow = seen.nlargest(min(len(seen), MOST_POINTS // 4), "latency_ms").index
    step = max(1, len(seen) // MOST_POINTS)
    shown = seen[seen.index.isin(slow) | (np.arange(len(seen)) % step == 0)]
    figure = go.Figure()
    points = {"size": 4, "color": theme.WITHIN, "opacity": 0.6}
    times = shown.intended_at_s - start_s
    figure.add_scatter(x=times, y=shown.latency_ms, mode="markers", marker=points, name="received")
    if len(never):
        crosses = {"size": 8, "color": theme.OUTSIDE, "symbol": "x"}
        top = [float(seen.latency_ms.max())] * len(never)
        figure.add_scatter(
            x=never.intended_at_s - start_s, y=top, mode="markers", marker=crosses, name="never received"
        )
    figure.update_xaxes(title="intended send time (s since the first)")
    figure.update_yaxes(title="latency from intended send to receipt (ms)", rangemode="tozero")
    every = "Every record." if step == 1 else f"Every {step}th record, and all of the slowest."
    said = f"{count(len(seen), 'record')} received, {count(len(never), 'record')} never"
    return theme.finish(
        figure,
        name="latency-over-time",
        title=title,
        subtitle=f"{every} {said}.",
        alt=f"Latency of each record over time. {said}; the slowest took {seen.latency_ms.max():.0f} ms.",
        caption=f"{said}.",
        table=pd.DataFrame({"intended_s": times, "latency_ms": shown.latency_ms}),
        note=note,
    )


def _curve(tail) -> tuple[np.ndarray, np.ndarray]:
    """Share that took longer and latency, a step for each value, thinned where it is dense."""
    above = 1 - np.concatenate([[0.0], tail.cumulative[:-1]]) / tail.n
    place = np.unique(np.searchsorted(-above, -np.logspace(0, log10(above.min()), MOST_POINTS)))
    place = place[place < len(above)]
    return above[place], tail.values_ms[place]


def _points(figure: go.Figure, known, shade: str, number: int) -> None:
    if not known:
        return
    middle = np.array([contrast.estimate for _, contrast in known])
    low = np.array([contrast.low if isfinite(contrast.low) else contrast.estimate for _, contrast in known])
    high = np.array(
        [contrast.high if isfinite(contrast.high) else contrast.estimate for _, contrast in known]
    )
    figure.add_scatter(
        x=[1 - q for q, _ in known],
        y=middle,
        mode="markers",
        marker={
            "color": shade,
            "size": 10,
            "symbol": ["circle" if isfinite(c.high) else "triangle-up" for _, c in known],
        },
        error_y={"type": "data", "symmetric": False, "array": high - middle, "arrayminus": middle - low},
        customdata=[[theme.plain(c.sentence)] for _, c in known],
        hovertemplate="%{customdata[0]}<extra></extra>",
        showlegend=False,
        legendgroup=str(number),
    )
