"""Utilisation of circuits, as their operators report it: imported from a portal, or fetched from CloudWatch."""

from __future__ import annotations

from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_number
from wanbench.errors import MissingDataError

from .utilisation import COLUMNS, KEY, Capacity, by_link

INTO = {"in": True, "out": False}
DIRECT_CONNECT = {"ConnectionBpsIngress": True, "ConnectionBpsEgress": False}
VPN = {"TunnelDataIn": True, "TunnelDataOut": False}
WAYS = INTO | DIRECT_CONNECT | VPN
"""Metrics of a circuit's load, and whether each is inbound, as seen from the end that reports it."""
HERE = "here"
"""The end of the circuit that reports."""


def circuit_windows(metrics: pd.DataFrame, *, capacity_bps: float | None = None) -> pd.DataFrame:
    """
    Load of each direction of each circuit, interval by interval, in the columns of `utilisation.windows`.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics: rows of `importers.read_circuit`, or those of Direct Connect and VPN tunnels that were fetched
        from CloudWatch. Others are left out.
    capacity_bps : float, optional
        Capacity of every circuit whose rows do not state it.

    Returns
    -------
    DataFrame
        link_from and link_to are the circuit's name and "here". carried_bps and rate_bps are NaN if only a percentage
        is known; columns of packets and queues are always NaN.

    Raises
    ------
    MissingDataError
        No row is about a circuit, or none states the length of its interval.
    """
    check_number("capacity_bps", capacity_bps, 0, above=True, optional=True)
    rows = metrics[metrics.metric.isin(WAYS) & metrics.source.isin(["circuit", "cloudwatch"])]
    rows = rows[rows.interval_s > 0]
    if rows.empty:
        raise MissingDataError(
            "no metrics of a circuit with a known interval: none, or a single row, was imported or fetched."
        )
    stated = metrics[(metrics.metric == "capacity") & (metrics.source == "circuit")]
    stated = stated.drop_duplicates(["subject", "at_utc"])[["subject", "at_utc", "value"]]
    rows = rows.merge(stated.rename(columns={"value": "rate_bps"}), on=["subject", "at_utc"], how="left")
    rate_bps = rows.rate_bps.fillna(nan if capacity_bps is None else capacity_bps)
    # A tunnel counts the bytes of an interval; other circuits report bits per second.
    to_bps = np.where(rows.unit == "bytes", 8 / rows.interval_s, np.where(rows.unit == "bit/s", 1.0, nan))
    carried_bps = rows.value * to_bps
    percent = rows.unit == "%"
    carried_bps = carried_bps.where(~percent, rows.value / 100 * rate_bps)
    end_s = (rows.at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    comes_in = rows.metric.map(WAYS).astype(bool)
    windows = rows.assign(
        link_from=rows.subject.where(comes_in, HERE),
        link_to=rows.subject.where(~comes_in, HERE),
        start_s=end_s - rows.interval_s,
        end_s=end_s,
        rate_bps=rate_bps,
        carried_bps=carried_bps,
        utilisation=(rows.value / 100).where(percent, carried_bps / rate_bps),
        **dict.fromkeys(["packets_per_s", "packets_sent", "packets_queue_dropped", "bytes_backlog"], nan),
    )
    return windows.sort_values([*KEY, "link_from", "link_to", "end_s"], kind="stable")[COLUMNS].reset_index(drop=True)


def circuit_capacity(metrics: pd.DataFrame, *, capacity_bps: float | None = None) -> Capacity:
    """
    Whether circuits were ever at their capacity, judged by means over their intervals.

    Parameters and errors are those of `circuit_windows`; MissingDataError also if no capacity is known.
    """
    windows = circuit_windows(metrics, capacity_bps=capacity_bps)
    known = windows[windows.utilisation.notna()]
    if known.empty:
        raise MissingDataError("no capacity of a circuit is known; give capacity_bps.")
    links = by_link(known).assign(max_backlog_ms=nan, longest_backlog_s=nan).reset_index()
    circuit = links.link_from.where(links.link_from != HERE, links.link_to)
    return Capacity(links.assign(circuit=circuit), is_circuit=True)
