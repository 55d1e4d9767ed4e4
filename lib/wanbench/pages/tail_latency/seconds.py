"""Latency per second of an open-loop load, and its figure over time above the brokers' pauses."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_columns
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number
from wanbench.methods.tails import distribution
from wanbench.methods.tails import quantile_intervals as order

QUANTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
COLUMNS = ["start_s", "length_s", "n", *QUANTILES]


def per_second(frame: pd.DataFrame, *, what: str = "end to end", group: int = 0) -> pd.DataFrame:
    """
    Median, 99th percentile and maximum of latency by intended second.

    Parameters
    ----------
    frame : DataFrame
        Table open_loop_histograms. Seconds of the warm-up are left out.
    what : "end to end" or "publish"
    group : int
        The consumer group that received the records; unused with "publish".

    Returns
    -------
    DataFrame
        A row per second in which records were due: run_id, test_id and attempt if the frame has them, start_s,
        length_s, n (including lost records), p50_ms, p99_ms, max_ms. A quantile is infinite if lost records reach it.

    Raises
    ------
    ParameterError
        If the frame is no such table.
    MissingDataError
        If it has no such latency.
    """
    check_columns("open_loop_histograms", frame, ("what", "group", "warm_up", "n_lost", "histogram"))
    rows = _of_histograms(frame, what, group)
    if rows.empty:
        raise MissingDataError(f"no second has a latency of {what!r}, group {group}.")
    keys = trial_keys(rows)
    return rows.sort_values([*keys, "start_s"], ignore_index=True)[[*keys, *COLUMNS]]


def trial_keys(frame: pd.DataFrame) -> list[str]:
    """The columns that identify a trial."""
    return [key for key in ("run_id", "test_id", "attempt") if key in frame]


def _of_histograms(frame, what, group) -> pd.DataFrame:
    rows = frame[(frame.what == what) & ~frame.warm_up.astype(bool)]
    if what != "publish":
        rows = rows[(rows.group == group).fillna(False).astype(bool)]
    found = []
    for row in rows.to_dict("records"):
        values_us, counts = distribution.decoded(row["histogram"])
        values_ms, counts = np.append(values_us / 1_000, inf), np.append(counts, row["n_lost"])
        kept = {name: row[name] for name in (*trial_keys(rows), "start_s", "length_s")}
        if counts.sum():
            found.append(kept | _quantiles(values_ms, counts))
    return pd.DataFrame(found)


def _quantiles(values_ms, counts) -> dict:
    below = np.cumsum(counts)
    ranks = {name: order.rank(below[-1], q) for name, q in QUANTILES.items()}
    return {"n": int(below[-1])} | {
        name: float(values_ms[np.searchsorted(below, rank - 1e-6)]) for name, rank in ranks.items()
    }


NAMES = {"p50_ms": "median", "p99_ms": "p99", "max_ms": "maximum"}
ROW_PX = 26
"""Height of a row of pauses."""
MIN_PX = 3
"""Width of a mark of a pause that is too short to be seen as a bar."""


def over_time(
    seconds: pd.DataFrame,
    *,
    group: int = 0,
    pauses: pd.DataFrame | None = None,
    what: str = "end to end",
    title: str = "Latency over time",
    note: str = "",
) -> go.Figure:
    """
    Latencies of one trial by intended send time, and the pauses of brokers below, on the same axis of time.

    Parameters
    ----------
    seconds : DataFrame
        The result of `per_second`, or table open_loop_histograms: lines of median, p99 and maximum per second.
    pauses : DataFrame, optional
        Table broker_pauses: a row of marks per node and kind, from the start to the end of each pause.
    what : "end to end" or "publish"
        The latency to take from histograms.
    """
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06) if pauses is not None else go.Figure()
    start_s, end_s, table, said = _draw_seconds(figure, seconds, group, what)
    if pauses is None:
        figure.update_xaxes(title="intended send time (s since the first)")
    else:
        marks, rows = _marks(pauses, start_s, end_s)
        _draw_marks(figure, marks, rows)
        said = {**said, "caption": f"{said['caption']} {_spelled(marks)}", "alt": f"{said['alt']} {_spelled(marks)}"}
        said["subtitle"] += " Below: pauses of brokers, from start to end."
        table = pd.concat([table, marks], ignore_index=True)
    figure.update_yaxes(
        title="latency from intended send to receipt (ms)" if what != "publish" else "publish latency (ms)",
        rangemode="tozero",
        **({} if pauses is None else {"row": 1, "col": 1}),
    )
    return theme.finish(figure, name="latency-over-time", title=title, table=table, note=note, **said)


def _draw_seconds(figure, frame, group, what):
    seconds = frame if "p50_ms" in frame else per_second(frame, what=what, group=group)
    keys = [key for key in ("run_id", "test_id", "attempt") if key in seconds]
    if keys and len(seconds[keys].drop_duplicates()) > 1:
        raise ParameterError("the seconds are those of several trials; allowed: one trial, whose time is the axis.")
    seconds = seconds.sort_values("start_s")
    start_s, end_s = seconds.start_s.min(), (seconds.start_s + seconds.length_s).max()
    middle = seconds.start_s + seconds.length_s / 2 - start_s
    for column, colour, dash in zip(QUANTILES, theme.SERIES_COLOURS, ("solid", "dash", "dot"), strict=False):
        figure.add_scatter(
            x=middle,
            y=seconds[column].where(np.isfinite(seconds[column])),
            mode="lines+markers",
            name=NAMES[column],
            line={"color": colour, "dash": dash, "width": 2},
            marker={"size": 4},
        )
    highest = seconds.loc[seconds.max_ms.where(np.isfinite(seconds.max_ms), -1).idxmax()]
    lost = int((~np.isfinite(seconds.max_ms)).sum())
    gone = f"; {count(lost, 'second')} with lost records without a maximum" if lost else ""
    counted = f"{count(len(seconds), 'second')}, {count(int(seconds.n.sum()), 'record')}{gone}"
    said = {
        "subtitle": f"Lines: median, p99 and maximum of the records due in each second. {counted}.",
        "alt": f"Latency per second over time. {counted}; the slowest record took {number(highest.max_ms)} ms, in "
        f"second {highest.start_s - start_s:.0f}.",
        "caption": f"{counted}.",
    }
    table = seconds[list(QUANTILES)].assign(intended_s=middle)
    return start_s, end_s, table[["intended_s", *QUANTILES]], said


def _marks(pauses, start_s, end_s) -> tuple[pd.DataFrame, list[str]]:
    """The pauses within the time shown, each with its row; and the rows."""
    ends = pauses.at_s + pauses.duration_ms / 1_000
    inside = pauses[(pauses.at_s <= end_s) & (ends >= start_s)].sort_values(["kind", "node_id", "at_s"])
    label = [
        f"{kind}, node {'?' if pd.isna(node) else int(node)}"
        for kind, node in zip(inside.kind, inside.node_id, strict=True)
    ]
    marks = pd.DataFrame(
        {"pause_of": label, "pause_at_s": inside.at_s - start_s, "duration_ms": inside.duration_ms, "text": inside.text}
    )
    return marks, list(dict.fromkeys(label))


def _draw_marks(figure, marks, rows) -> None:
    for k, row in enumerate(rows):
        part = marks[marks.pause_of == row]
        colour = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)]
        hover = [f"{number(ms)} ms, {theme.plain(text)}" for ms, text in zip(part.duration_ms, part.text, strict=True)]
        where = {"row": 2, "col": 1, "showlegend": False}
        # three points per pause, the last one missing, make one trace of separate bars
        ends = np.column_stack(
            [part.pause_at_s, part.pause_at_s + part.duration_ms / 1_000, np.full(len(part), np.nan)]
        )
        line = {"color": colour, "width": ROW_PX // 2}
        figure.add_scatter(x=ends.ravel(), y=[k] * ends.size, mode="lines", line=line, hoverinfo="skip", **where)
        marker = {"symbol": "line-ns", "size": ROW_PX // 2, "line": {"color": colour, "width": MIN_PX}}
        figure.add_scatter(
            x=part.pause_at_s, y=[k] * len(part), mode="markers", marker=marker, text=hover,
            hovertemplate="%{text}<extra></extra>", **where,
        )  # fmt: skip
    below = ROW_PX * max(1, len(rows)) + 40
    share = below / (theme.HEIGHT_PX - 100 + below)
    figure.update_layout(
        height=theme.HEIGHT_PX + below, yaxis={"domain": [share + 0.04, 1]}, yaxis2={"domain": [0, share]}
    )
    primitives.label_rows(figure, rows or ["no pause"], row=2, col=1)
    figure.update_xaxes(title="intended send time (s since the first)", row=2, col=1)


def _spelled(marks) -> str:
    if marks.empty:
        return "No pause of a broker in this time."
    longest = marks.loc[marks.duration_ms.idxmax()]
    return (
        f"{count(len(marks), 'pause')} of brokers in this time, the longest {number(longest.duration_ms)} ms "
        f"({longest.pause_of})."
    )
