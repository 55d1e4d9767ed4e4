"""Latency per second: quantiles of the records due in each second of a probe or an open-loop load."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd

from ...checks import check_columns
from ...errors import MissingDataError
from . import histograms
from . import quantile_intervals as order
from .probe_latencies import PROBE, with_latency

QUANTILES = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
COLUMNS = ["start_s", "length_s", "n", *QUANTILES]


def per_second(frame: pd.DataFrame, *, what: str = "end to end", group: int = 0) -> pd.DataFrame:
    """
    Median, 99th percentile and maximum of latency by intended second.

    Parameters
    ----------
    frame : DataFrame
        Table open_loop_histograms, of which seconds of the warm-up are left out; table histograms; or probe_records.
    what : "end to end" or "publish"
    group : int
        The consumer group that received the records; unused with "publish".

    Returns
    -------
    DataFrame
        A row per second in which records were due: the columns of `PROBE` in the frame except the file, start_s,
        length_s, n (including lost records), p50_ms, p99_ms, max_ms. A quantile is infinite if lost records reach it.

    Raises
    ------
    ParameterError
        If the frame is none of these tables.
    MissingDataError
        If it has no such latency.
    """
    if "histogram" in frame:
        rows = _of_histograms(frame, what, group)
    else:
        check_columns(
            "probe_records", frame, ("sequence", "group", "intended_at_s", "latency_ms", "duplicate")
        )
        rows = _of_records(frame, what, group)
    if rows.empty:
        raise MissingDataError(f"no second has a latency of {what!r}, group {group}.")
    keys = trial_keys(rows)
    return rows.sort_values([*keys, "start_s"], ignore_index=True)[[*keys, *COLUMNS]]


def trial_keys(frame: pd.DataFrame) -> list[str]:
    """The columns that identify a trial."""
    return [key for key in PROBE if key in frame and key != "source_file"]


def _of_histograms(frame, what, group) -> pd.DataFrame:
    rows = frame
    if "what" in frame:
        rows = rows[rows.what == what]
    if "what" not in frame or what != "publish":
        rows = rows[(rows.group == group).fillna(False).astype(bool)]
    if "warm_up" in rows:
        rows = rows[~rows.warm_up.astype(bool)]
    lost = rows.n_lost if "n_lost" in rows else pd.Series(0, index=rows.index)
    found = []
    for row, n_lost in zip(rows.to_dict("records"), lost, strict=True):
        values_us, counts = histograms.decoded(row["histogram"])
        values_ms, counts = np.append(values_us / 1_000, inf), np.append(counts, n_lost)
        kept = {name: row[name] for name in (*trial_keys(rows), "start_s", "length_s")}
        if counts.sum():
            found.append(kept | _quantiles(values_ms, counts))
    return pd.DataFrame(found)


def _of_records(frame, what, group) -> pd.DataFrame:
    seen = with_latency(frame, what, group, "intended", "the probe")
    found, keys = [], trial_keys(frame)
    trials = frame.groupby(keys, dropna=False, sort=False) if keys else [((), frame)]
    for key, trial in trials:
        due = trial.drop_duplicates("sequence").set_index("sequence").intended_at_s
        latencies = seen[seen.index.isin(trial.index)].set_index("sequence").latency_ms
        latencies = latencies.reindex(due.index).fillna(inf)
        first_s = due.min()
        # 1e-6: a schedule in whole parts of a second, in floats
        for second, values in latencies.groupby(np.floor(due - first_s + 1e-6)):
            values, counts = np.unique(values, return_counts=True)
            times = {"start_s": first_s + second, "length_s": 1.0}
            found.append(dict(zip(keys, key, strict=True)) | times | _quantiles(values, counts))
    return pd.DataFrame(found)


def _quantiles(values_ms, counts) -> dict:
    below = np.cumsum(counts)
    ranks = {name: order.rank(below[-1], q) for name, q in QUANTILES.items()}
    return {"n": int(below[-1])} | {
        name: float(values_ms[np.searchsorted(below, rank - 1e-6)]) for name, rank in ranks.items()
    }
