"""Reports of the producers of one trial: rates, latency, shares."""

from __future__ import annotations

from math import nan

import numpy as np
import pandas as pd

from wanbench.formatting import count, number

SATURATED_S = 1.0
"""A reporting interval: producers further behind than this lag by more than the records in flight."""


def records_per_s(inside: pd.DataFrame) -> pd.Series:
    """Records per second of each producer, from its lines inside the counted seconds."""
    sums = inside[inside.length_s > 0].groupby("producer")[["records", "length_s"]].sum()
    return sums.records / sums.length_s


def behind_s(inside: pd.DataFrame) -> float:
    """Lag of the slowest producer behind its target rate, at its last line; NaN without a target."""
    if inside.behind_s.isna().all():
        return nan
    last = inside.sort_values("window").groupby("producer").behind_s.last()
    return float(last.max()) if last.notna().any() else nan


def cautions(rates: pd.DataFrame) -> list[str]:
    """Cautions for trials in which acknowledgements lagged the target rate."""
    behind = rates.behind_s[rates.behind_s > SATURATED_S]
    if behind.empty:
        return []
    return [
        f"in {count(len(behind), 'trial')} acknowledgements lagged the target rate, by up to {number(behind.max())} s: "
        "where that grows, the system is saturated, and latencies grow with it"
    ]


def latency(inside: pd.DataFrame, producers: pd.DataFrame) -> dict:
    """Latency of all records, from the lines or else from each producer's totals after its warm-up."""
    row = {"mean_latency_ms": nan, "max_latency_ms": nan, "latency_by": None}
    totals = producers[~producers.warmup]
    for name, rows in (("the producers' lines", inside), ("their sums", totals)):
        columns = ("mean_latency_ms", "max_latency_ms", "records")
        reported = np.array([rows[column].to_numpy(dtype="float64", na_value=nan) for column in columns])
        reported = reported[:, reported[2] != 0]
        if reported.size and not np.isnan(reported).any():
            mean, largest, records = reported
            row["mean_latency_ms"] = float(np.average(mean, weights=records))
            row["max_latency_ms"] = float(largest.max())
            row["latency_by"] = name
            break
    n = inside.producer.nunique() or totals.producer.nunique()
    return row | {"n_producers": int(n), "n_producer_errors": int(producers.n_errors.sum())}


def shares(inside: pd.DataFrame, producers: pd.DataFrame) -> pd.DataFrame:
    """Records per second and share of each producer, from its lines or else from its totals after the warm-up."""
    rates = records_per_s(inside).rename("records_per_s").reset_index()
    if rates.empty:
        totals = producers[~producers.warmup & producers.records_per_s.notna()]
        rates = totals[["producer", "records_per_s"]].reset_index(drop=True)
    return rates.assign(share=rates.records_per_s / rates.records_per_s.sum())
