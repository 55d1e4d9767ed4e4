"""Latency per second: quantiles of the records due in each second of an open-loop load."""

from __future__ import annotations

from math import inf

import numpy as np
import pandas as pd

from wanbench.checks import check_columns
from wanbench.errors import MissingDataError
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
