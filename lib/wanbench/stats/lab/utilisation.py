"""How full links were, window by window: "never at capacity" as a measured statement."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, number, quantity
from ..result import Result

KEY = ["run_id", "test_id", "attempt"]
LINK = [*KEY, "link_from", "link_to"]
AT_CAPACITY = 0.95
"""Share of its rate from which on a link counts as at its capacity in a window."""
METHOD = "bits delivered, and lost after they had used the link's rate, between two readings of its counters"
ASSUMPTION = "a burst shorter than a window shows in its queue's drops and backlog only"
COLUMNS = [
    *LINK, "start_s", "end_s", "rate_bps", "carried_bps", "utilisation", "packets_per_s", "packets_sent",
    "packets_queue_dropped", "bytes_backlog",
]  # fmt: skip


def windows(samples: pd.DataFrame, window_s: float | None = None) -> pd.DataFrame:
    """
    What each link carried between one sample and the next.

    Parameters
    ----------
    samples : DataFrame
        Table link_samples.
    window_s : float, optional
        Put samples together to windows at least so long; by default each two neighbours make one.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, link_from, link_to, start_s, end_s (Unix s), rate_bps, carried_bps, utilisation (NaN
        without a rate, or where it was changed within the window), packets_per_s (delivered), packets_sent and
        packets_queue_dropped in the window, bytes_backlog (at its end). A window over which counters fall (another
        lab) is left out.
    """
    if window_s is not None and not window_s > 0:
        raise ParameterError(f"window_s is {window_s!r}; it must be above 0.")
    rows = samples.sort_values("at_s", kind="stable")
    if window_s is not None:
        since = rows.at_s - rows.groupby(LINK, dropna=False).at_s.transform("min")
        rows = rows.assign(number=(since / window_s + 1e-6).astype("int64"))
        rows = rows.drop_duplicates([*LINK, "number"])
    rows = rows.assign(used=rows.bytes_delivered.astype(float) + rows.bytes_lost.astype(float).fillna(0.0))
    counted = ["packets_sent", "packets_delivered", "packets_queue_dropped", "used"]
    before = rows.groupby(LINK, dropna=False)[["at_s", "rate_bps", *counted]].shift()
    spent_s = rows.at_s - before.at_s
    grown = rows[counted].astype(float) - before[counted].astype(float)
    carried_bps = 8 * grown.used / spent_s
    found = rows.assign(
        start_s=before.at_s,
        end_s=rows.at_s,
        carried_bps=carried_bps,
        utilisation=(carried_bps / rows.rate_bps).where(rows.rate_bps == before.rate_bps),
        packets_per_s=grown.packets_delivered / spent_s,
        packets_sent=grown.packets_sent,
        packets_queue_dropped=grown.packets_queue_dropped,
    )[(spent_s > 0) & (grown >= 0).all(axis=1)]
    return found.sort_values([*LINK, "end_s"], kind="stable")[COLUMNS].reset_index(drop=True)


@dataclass(frozen=True, repr=False)
class Capacity(Result):
    """
    Whether links were ever at their capacity.

    `links` has a row per test and link: n_windows, window_s (the median), mean_utilisation, greatest_utilisation,
    share_at_capacity (of its windows), packets_sent, packets_queue_dropped, greatest_backlog_ms (how long what waited
    at a sample needs to leave), longest_backlog_s (the longest time in which every sample found some).
    """

    links: pd.DataFrame
    at: float

    @property
    def never(self) -> bool:
        """No window at capacity, and nothing dropped by a queue."""
        return bool(
            (self.links.share_at_capacity == 0).all() and (self.links.packets_queue_dropped == 0).all()
        )

    @property
    def sentence(self) -> str:
        """The statement, with the length of the windows that it holds for."""
        rows = self.links
        n, tests = int(rows.n_windows.sum()), len(rows.drop_duplicates(KEY))
        at_capacity = round((rows.share_at_capacity * rows.n_windows).sum())
        greatest = rows.loc[rows.greatest_utilisation.idxmax()]
        dropped, sent = int(rows.packets_queue_dropped.sum()), int(rows.packets_sent.sum())
        length_s = float(f"{rows.window_s.median():.2g}")
        often = f"at capacity in {number(at_capacity, 0)}" if at_capacity else "never at capacity"
        return (
            f"In {count(n, 'window')} of {number(length_s)} s from {count(tests, 'test')} the links were {often} "
            f"({100 * self.at:g} % of their rate or more): the fullest window carried "
            f"{quantity(greatest.greatest_utilisation, 'fraction')}, from {greatest.link_from} to {greatest.link_to}; "
            f"queues dropped {number(dropped, 0)} of {count(sent, 'packet')}, and the longest backlog at the end of a "
            f"window was {quantity(float(rows.greatest_backlog_ms.max()), 'ms')}."
        )

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding whose sentence is `sentence`; its number is the greatest utilisation of a window."""
        return Finding(
            name=name,
            sentence=self.sentence,
            estimate=float(self.links.greatest_utilisation.max()),
            low=nan,
            high=nan,
            unit="fraction",
            n=len(self.links.drop_duplicates(KEY)),
            n_regions=None,
            method=METHOD,
            assumption=ASSUMPTION,
            page=page,
        )

    def table(self) -> pd.DataFrame:
        """`links`."""
        return self.links


def capacity(samples: pd.DataFrame, *, at: float = AT_CAPACITY, window_s: float | None = None) -> Capacity:
    """
    Judge every link of every test that has a rate and at least two samples.

    Parameters
    ----------
    samples : DataFrame
        Table link_samples.
    at : float
        The utilisation from which on a window counts as at capacity.
    window_s : float, optional
        As in `windows`.

    Raises
    ------
    ParameterError
        If `at` is not above 0, or no link has a rate and two samples.
    """
    if not at > 0:
        raise ParameterError(f"at is {at!r}; it must be above 0.")
    known = windows(samples, window_s)
    known = known[known.utilisation.notna()]
    if known.empty:
        raise ParameterError("no link has a rate and two samples, so none can be judged")
    known = known.assign(window_s=known.end_s - known.start_s, is_full=known.utilisation >= at)
    groups = known.groupby(LINK, dropna=False)
    table = groups.agg(
        n_windows=("utilisation", "size"),
        window_s=("window_s", "median"),
        rate_bps=("rate_bps", "max"),
        greatest_utilisation=("utilisation", "max"),
        share_at_capacity=("is_full", "mean"),
        packets_sent=("packets_sent", "sum"),
        packets_queue_dropped=("packets_queue_dropped", "sum"),
    )
    spent_s = groups.window_s.sum()
    weighted = (
        (known.utilisation * known.window_s).groupby([known[name] for name in LINK], dropna=False).sum()
    )
    table.insert(3, "mean_utilisation", weighted / spent_s)
    return Capacity(table.join(_backlogs(samples)).reset_index(), at)


def _backlogs(samples):
    """Per test and link: the greatest backlog in time, and the longest time in which every sample found one."""
    rows = samples.sort_values([*LINK, "at_s"], kind="stable")
    waits_ms = 8000 * rows.bytes_backlog.astype(float) / rows.rate_bps
    waiting = rows.bytes_backlog.fillna(0).gt(0)
    keys = [rows[name] for name in LINK]
    stretch = (waiting != waiting.groupby(keys, dropna=False).shift()).cumsum()
    stretches = rows[waiting].groupby(
        [*(key[waiting] for key in keys), stretch[waiting].rename("n")], dropna=False
    )
    longest_s = (stretches.at_s.max() - stretches.at_s.min()).groupby(level=LINK, dropna=False).max()
    found = pd.DataFrame({"greatest_backlog_ms": waits_ms.groupby(keys, dropna=False).max()})
    return found.join(longest_s.rename("longest_backlog_s")).fillna({"longest_backlog_s": 0.0})


def packets(samples: pd.DataFrame, region: str) -> pd.DataFrame:
    """
    Packets per second that a region received (rx) and sent (tx), over time: what all its links carried together.

    Counted on the links, where each packet is one of the wire; a host's own devices count less of them where it
    hands large ones to its network card (or to the emulated link) to be split.

    Parameters
    ----------
    samples : DataFrame
        Table link_samples.
    region : str
        Such as that of the brokers.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, start_s, end_s, rx_packets_per_s, tx_packets_per_s; of received and sent packets those
        that were delivered.
    """
    known = windows(samples)
    ways = {"rx_packets_per_s": known.link_to == region, "tx_packets_per_s": known.link_from == region}
    if not any(way.any() for way in ways.values()):
        raise ParameterError(f"no link to or from {region!r} was sampled")
    known = known.assign(sample=known.groupby(LINK, dropna=False).cumcount())
    keys = [*KEY, "sample"]
    found = known.groupby(keys, dropna=False)[["start_s", "end_s"]].mean()
    for name, way in ways.items():
        found[name] = known[way].groupby(keys, dropna=False).packets_per_s.sum()
    return found.fillna(dict.fromkeys(ways, 0.0)).reset_index().drop(columns="sample")


def run_means(frame: pd.DataFrame, *values: str) -> pd.DataFrame:
    """
    The mean of columns over each test, weighted by the length of its windows, so that tests are the unit.

    Parameters
    ----------
    frame : DataFrame
        As `packets` or `windows` return it: run_id, test_id, attempt, start_s, end_s and the columns.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, n_windows, and the columns.
    """
    rows = []
    for key, part in frame.groupby(KEY, dropna=False):
        lasts_s = (part.end_s - part.start_s).to_numpy()
        row = dict(zip(KEY, key, strict=True)) | {"n_windows": len(part)}
        rows.append(row | {value: np.average(part[value], weights=lasts_s) for value in values})
    return pd.DataFrame(rows, columns=[*KEY, "n_windows", *values])


def background(transfers: pd.DataFrame, intervals: pd.DataFrame) -> pd.DataFrame:
    """
    What iperf3 carried beside a test, over time: payload of all its streams, without headers.

    Parameters
    ----------
    transfers, intervals : DataFrame
        The tables of those names.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, start_s, end_s (Unix s, by the client's clock, which gives whole seconds),
        background_bps. Transfers that do not say when they started are left out.
    """
    one = ["source_file", "direction"]
    began = transfers[transfers.started_at_utc.notna()].drop_duplicates(one)[[*one, "started_at_utc"]]
    rows = intervals.merge(began, on=one)
    began_s = (rows.started_at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    omitted_s = rows.end_s.where(rows.omitted).groupby(rows.source_file).transform("max").fillna(0.0)
    offset_s = began_s + omitted_s.where(~rows.omitted, 0.0)
    rows = rows.assign(start_s=rows.start_s + offset_s, end_s=rows.end_s + offset_s)
    rows = rows.assign(bin=rows.end_s.round(1), background_bps=8 * rows.bytes / (rows.end_s - rows.start_s))
    groups = rows[rows.end_s > rows.start_s].groupby([*KEY, "bin"], dropna=False)
    found = groups.agg(
        start_s=("start_s", "min"), end_s=("end_s", "max"), background_bps=("background_bps", "sum")
    )
    return found.reset_index().drop(columns="bin")
