"""What the producers of one trial said of themselves: rates, latency, shares."""

from __future__ import annotations

from math import nan

import numpy as np
import pandas as pd

from ...formatting import count, number

SATURATED_S = 1.0
"""Producers further behind than this, a reporting interval, are behind by more than records on their way."""


def records_per_s(inside: pd.DataFrame) -> pd.Series:
    """Records a second of each producer, of its lines inside the counted seconds."""
    sums = inside[inside.length_s > 0].groupby("producer")[["records", "length_s"]].sum()
    return sums.records / sums.length_s


def behind_s(inside: pd.DataFrame) -> float:
    """How far the slowest producer was behind the rate asked of it, at its last line; NaN where none was asked."""
    last = inside.sort_values("window").groupby("producer").behind_s.last()
    return float(last.max()) if last.notna().any() else nan


def cautions(rates: pd.DataFrame) -> list[str]:
    """Of trials whose producers fell behind the rate asked of them."""
    behind = rates.behind_s[rates.behind_s > SATURATED_S]
    if behind.empty:
        return []
    return [
        f"in {count(len(behind), 'trial')} the producers fell behind the rate that was asked, by up to "
        f"{number(behind.max())} s: the system was saturated, and latencies grow as long as that lasts"
    ]


def latency(inside: pd.DataFrame, producers: pd.DataFrame) -> dict:
    """Latency of all records, of the lines or else of the sums of a producer's whole time after its warm-up."""
    found = {"mean_latency_ms": nan, "max_latency_ms": nan, "latency_by": None}
    for name, rows in (("the producers' lines", inside), ("their sums", producers[~producers.warmup])):
        told = rows[["mean_latency_ms", "max_latency_ms", "records"]].astype("float64")
        told = told[told.records != 0]
        if len(told) and told.notna().all(axis=None):
            found["mean_latency_ms"] = float(np.average(told.mean_latency_ms, weights=told.records))
            found["max_latency_ms"] = float(told.max_latency_ms.max())
            found["latency_by"] = name
            break
    n = inside.producer.nunique() or producers[~producers.warmup].producer.nunique()
    return found | {"n_producers": int(n), "n_producer_errors": int(producers.n_errors.sum())}


def shares(inside: pd.DataFrame, producers: pd.DataFrame) -> pd.DataFrame:
    """Records a second and share of each producer, of its lines or else of the sums of its time after the warm-up."""
    found = records_per_s(inside).rename("records_per_s").reset_index()
    if found.empty:
        whole = producers[~producers.warmup & producers.records_per_s.notna()]
        found = whole[["producer", "records_per_s"]].reset_index(drop=True)
    return found.assign(share=found.records_per_s / found.records_per_s.sum())
