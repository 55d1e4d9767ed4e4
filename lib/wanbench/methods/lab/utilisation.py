"""Measure link utilisation in short windows, to test whether links were ever at capacity."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_number
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.result import Estimate, Result

KEY = ["run_id", "test_id", "attempt"]
LINK = [*KEY, "link_from", "link_to"]
# A link is at capacity in a window if it carries this share of its rate; shapers keep a rate to within some per cent
AT_CAPACITY = 0.95
METHOD = "bits delivered, and bits lost after they had used the link's rate, between two readings of its counters"
ASSUMPTION = "A burst shorter than a window shows only in the drops and the backlog of the queue"
CIRCUIT_METHOD = "the mean rate of each interval, as the circuit's operator reports it"
COLUMNS = [
    *LINK, "start_s", "end_s", "rate_bps", "carried_bps", "utilisation", "packets_per_s", "packets_sent",
    "packets_queue_dropped", "bytes_backlog",
]  # fmt: skip
# Names of metrics of a circuit's load (of an operator, Direct Connect or VPN), and whether each counts the inbound
# traffic of the reporting end
WAYS = dict.fromkeys(("in", "ConnectionBpsIngress", "TunnelDataIn"), True)
WAYS |= dict.fromkeys(("out", "ConnectionBpsEgress", "TunnelDataOut"), False)
HERE = "here"  # The reporting end of a circuit


def windows(samples: pd.DataFrame) -> pd.DataFrame:
    """
    Compute the traffic of each link between consecutive samples.

    samples: Table link_samples.

    Returns DataFrame: run_id, test_id, attempt, link_from, link_to, start_s, end_s (Unix s), rate_bps, carried_bps,
        utilisation (NaN if the link has no rate, or its rate changed within the window), packets_per_s (delivered),
        packets_sent and packets_queue_dropped in the window, bytes_backlog (at the window's end). A window in which
        counters decrease is left out, because a new lab was opened.
    """
    rows = samples.sort_values("at_s", kind="stable")
    # A lost packet has used up some of the link's rate, because packets are lost after the queue.
    rows = rows.assign(used=rows.bytes_delivered.astype(float) + rows.bytes_lost.astype(float).fillna(0.0))
    counted = ["packets_sent", "packets_delivered", "packets_queue_dropped", "used"]
    before = rows.groupby(LINK, dropna=False)[["at_s", "rate_bps", *counted]].shift()
    spent_s = rows.at_s - before.at_s
    grown = rows[counted].astype(float) - before[counted].astype(float)
    carried_bps = 8 * grown.used / spent_s
    result = rows.assign(
        start_s=before.at_s,
        end_s=rows.at_s,
        carried_bps=carried_bps,
        utilisation=(carried_bps / rows.rate_bps).where(rows.rate_bps == before.rate_bps),
        packets_per_s=grown.packets_delivered / spent_s,
        packets_sent=grown.packets_sent,
        packets_queue_dropped=grown.packets_queue_dropped,
    )[(spent_s > 0) & (grown >= 0).all(axis=1)]
    return result.sort_values([*LINK, "end_s"], kind="stable")[COLUMNS].reset_index(drop=True)


@dataclass(frozen=True, repr=False)
class Capacity(Result):
    """
    The utilisation of links, and whether they were ever at capacity.

    links: Per test and link: n_windows, window_s (the median), rate_bps, mean_utilisation, max_utilisation,
        share_at_capacity (the share of windows at capacity), packets_sent, packets_queue_dropped, max_backlog_ms (time
        to send the bytes queued at a sample), longest_backlog_s (longest time in which every sample had queued bytes).
        Unknown values, such as the queues of a circuit, are NaN.
    is_circuit: Whether the numbers come from the circuit's operator, not from the lab's counters.
    """

    links: pd.DataFrame
    is_circuit: bool = False

    TITLE = "Links, over all tests"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        key, unit, method = KEY, "test", METHOD
        if self.is_circuit:
            key, unit, method = [*KEY, "circuit"], "circuit", CIRCUIT_METHOD
        n, largest = len(self.links.drop_duplicates(key)), float(self.links.max_utilisation.max())
        names = "largest utilisation of a window", "The fullest window carried {} of the rate"
        return (Estimate(*names, largest, nan, nan, "fraction", n, method, ASSUMPTION, count(n, unit)),)

    @property
    def sentence(self) -> str:
        rows, (largest,) = self.links, self.estimates
        at_capacity = round((rows.share_at_capacity * rows.n_windows).sum())
        often = f"{number(at_capacity, 0)} {'was' if at_capacity == 1 else 'were'}" if at_capacity else "none was"
        fullest = rows.loc[rows.max_utilisation.idxmax()]
        length_s = float(f"{rows.window_s.median():.2g}")
        queues = "Drops in queues are unknown"
        if rows.packets_sent.notna().any():
            dropped, sent = rows.packets_queue_dropped.sum(), int(rows.packets_sent.sum())
            queues = (
                f"Queues dropped {number(dropped, 0)} of {count(sent, 'packet')}, and the longest backlog at the end "
                f"of a window was {quantity(float(rows.max_backlog_ms.max()), 'ms')}"
            )
        return (
            f"Of {count(int(rows.n_windows.sum()), 'window')} of {number(length_s)} s in {largest.basis}, each of one "
            f"link, {often} at capacity ({percent(AT_CAPACITY)} of the link's rate or more). The fullest window, from "
            f"{fullest.link_from} to {fullest.link_to}, carried {largest.formatted} of the rate. {queues}."
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for ends, part in self.links.groupby(["link_from", "link_to"], sort=False):
            largest = (part.max_backlog_ms.max(), "ms"), (part.longest_backlog_s.max(), "s")
            dropped = part.packets_queue_dropped
            lost = count(int(dropped.sum()), "packet") if dropped.notna().any() else "not known"
            row = (" to ".join(ends), count(len(part), "test"), quantity(part.max_utilisation.max(), "fraction"))
            rows.append((*row, lost, *(quantity(*one) for one in largest)))
        heads = ["link", "tests", "largest utilisation", "dropped by its queue", "longest backlog", "backlog for"]
        return pd.DataFrame(rows, columns=heads)


def capacity(samples: pd.DataFrame) -> Capacity:
    """
    Compute the utilisation of every link of every test, if the link has a rate and at least two samples.

    samples: Table link_samples.

    Raises MissingDataError: there are no samples, as on a real network.
    Raises ParameterError: no link has a rate and two samples.
    """
    if samples.empty:
        raise MissingDataError("the run has no samples of links: a real network has no links to count on.")
    loads = windows(samples)
    loads = loads[loads.utilisation.notna()]
    if loads.empty:
        raise ParameterError("no link has a rate and two samples, so none can be judged")
    return Capacity(by_link(loads).join(_backlogs(samples)).reset_index())


def by_link(loads: pd.DataFrame) -> pd.DataFrame:
    """Summarise windows per test and link (`LINK`), with the columns of `Capacity.links` except those on backlogs."""
    loads = loads.assign(window_s=loads.end_s - loads.start_s, is_full=loads.utilisation >= AT_CAPACITY)
    groups = loads.groupby(LINK, dropna=False)
    table = groups.agg(
        n_windows=("utilisation", "size"),
        window_s=("window_s", "median"),
        rate_bps=("rate_bps", "max"),
        max_utilisation=("utilisation", "max"),
        share_at_capacity=("is_full", "mean"),
    )
    counted = ["packets_sent", "packets_queue_dropped"]
    table = table.join(groups[counted].sum(min_count=1))
    spent_s = groups.window_s.sum()
    weighted = (loads.utilisation * loads.window_s).groupby([loads[name] for name in LINK], dropna=False).sum()
    table.insert(3, "mean_utilisation", weighted / spent_s)
    return table


def _backlogs(samples: pd.DataFrame) -> pd.DataFrame:
    """
    Return, for each test and link, the largest backlog in ms, and the longest period with a backlog in every sample.
    """
    rows = samples.sort_values([*LINK, "at_s"], kind="stable")
    waits_ms = 8000 * rows.bytes_backlog.astype(float) / rows.rate_bps
    waiting = rows.bytes_backlog.fillna(0).gt(0)
    keys = [rows[name] for name in LINK]
    # A stretch is a series of samples that all have queued bytes, or all have none; `waiting` selects the former.
    stretch = (waiting != waiting.groupby(keys, dropna=False).shift()).cumsum()
    stretches = rows[waiting].groupby([*(key[waiting] for key in keys), stretch[waiting].rename("n")], dropna=False)
    longest_s = (stretches.at_s.max() - stretches.at_s.min()).groupby(level=LINK, dropna=False).max()
    largest = pd.DataFrame({"max_backlog_ms": waits_ms.groupby(keys, dropna=False).max()})
    return largest.join(longest_s.rename("longest_backlog_s")).fillna({"longest_backlog_s": 0.0})


def background(transfers: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    """
    Compute the payload throughput of iperf3 over time during tests, summed over all streams.

    transfers, intervals: The tables of those names.

    Returns DataFrame: run_id, test_id, attempt, start_s, end_s (Unix s by the client's clock; iperf3 reports its start
        in whole seconds), background_bps. Transfers without a start time are left out.
    """
    one = ["source_file", "direction"]
    began = transfers[transfers.started_at_utc.notna()].drop_duplicates(one)[[*one, "started_at_utc"]]
    rows = intervals.merge(began, on=one)
    began_s = (rows.started_at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    # iperf3 counts seconds from 0 again after the omitted intervals.
    omitted_s = rows.end_s.where(rows.omitted).groupby(rows.source_file).transform("max").fillna(0.0)
    offset_s = began_s + omitted_s.where(~rows.omitted, 0.0)
    rows = rows.assign(start_s=rows.start_s + offset_s, end_s=rows.end_s + offset_s)
    rows = rows.assign(bin=rows.end_s.round(1), background_bps=8 * rows.bytes / (rows.end_s - rows.start_s))
    groups = rows[rows.end_s > rows.start_s].groupby([*KEY, "bin"], dropna=False)
    sums = groups.agg(start_s=("start_s", "min"), end_s=("end_s", "max"), background_bps=("background_bps", "sum"))
    return sums.reset_index().drop(columns="bin")


def circuit_windows(metrics: pd.DataFrame, *, capacity_bps: float | None = None) -> pd.DataFrame:
    """
    Compute the load of each circuit and direction in each interval, with the columns of `windows`.

    One of link_from and link_to is the circuit's name, the other is "here"; carried_bps and rate_bps are NaN if only a
    percentage is known.

    metrics: Rows of `importers.read_circuit`, or rows about Direct Connect and VPN tunnels fetched from CloudWatch.
    capacity_bps: The capacity of all circuits whose rows do not state it.

    Raises MissingDataError: no row is about a circuit, or none states the length of its interval.
    """
    check_number("capacity_bps", capacity_bps, 0, above=True, optional=True)
    rows = metrics[metrics.metric.isin(WAYS) & metrics.source.isin(["circuit", "cloudwatch"])]
    rows = rows[rows.interval_s > 0]
    if rows.empty:
        message = "no metrics of a circuit with a known interval: none, or a single row, was imported or fetched."
        raise MissingDataError(message)
    stated = metrics[(metrics.metric == "capacity") & (metrics.source == "circuit")]
    stated = stated.drop_duplicates(["subject", "at_utc"])[["subject", "at_utc", "value"]]
    rows = rows.merge(stated.rename(columns={"value": "rate_bps"}), on=["subject", "at_utc"], how="left")
    rate_bps = rows.rate_bps.fillna(nan if capacity_bps is None else capacity_bps)
    # Metrics of a tunnel are bytes per interval, those of other circuits bit/s or per cent.
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
    Compute the utilisation of circuits, and whether they were ever at capacity, from their mean load in each interval.

    metrics, capacity_bps: As in `circuit_windows`.

    Raises MissingDataError: as in `circuit_windows`, or if no capacity is known.
    """
    windows = circuit_windows(metrics, capacity_bps=capacity_bps)
    loads = windows[windows.utilisation.notna()]
    if loads.empty:
        raise MissingDataError("no capacity of a circuit is known; give capacity_bps.")
    links = by_link(loads).assign(max_backlog_ms=nan, longest_backlog_s=nan).reset_index()
    circuit = links.link_from.where(links.link_from != HERE, links.link_to)
    return Capacity(links.assign(circuit=circuit), is_circuit=True)
