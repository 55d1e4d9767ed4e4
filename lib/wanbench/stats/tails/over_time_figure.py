"""A probe's latencies over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ...errors import ParameterError
from ...figures import theme
from ...formatting import count


def over_time(
    records: pd.DataFrame, *, group: int = 0, title: str = "Latency over time", note: str = ""
) -> go.Figure:
    """
    A probe's latencies by intended send time: first receipts as points, records that were never received as crosses.

    `records` is table probe_records. Of many records, every k-th is drawn and all of the slowest.
    """
    seen = records[(records.group == group).fillna(False) & ~records.duplicate & records.latency_ms.notna()]
    if seen.empty:
        raise ParameterError(f"table probe_records has no latency of group {group}.")
    never = records[~records.sequence.isin(seen.sequence)].drop_duplicates("sequence")
    start_s = records.intended_at_s.min()
    slow = seen.nlargest(min(len(seen), theme.MAX_POINTS // 4), "latency_ms").index
    step = max(1, len(seen) // theme.MAX_POINTS)
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
    counted = f"{count(len(seen), 'record')} received, {count(len(never), 'record')} never"
    return theme.finish(
        figure,
        name="latency-over-time",
        title=title,
        subtitle=f"{every} {counted}.",
        alt=f"Latency of each record over time. {counted}; the slowest took {seen.latency_ms.max():.0f} ms.",
        caption=f"{counted}.",
        table=pd.DataFrame({"intended_s": times, "latency_ms": shown.latency_ms}),
        note=note,
    )
