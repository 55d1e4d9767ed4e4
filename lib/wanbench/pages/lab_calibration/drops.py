"""Where packets were dropped, and how late they were delivered: whether the lab distorted the measurement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.lab.verdicts import LINK_KEY, OUTSIDE, WITHIN
from wanbench.methods.result import RowsResult

DROPPED = ["packets_queue_dropped", "packets_lost", "packets_device_dropped"]


class LinkDrops(RowsResult):
    """
    Drops in each direction of a link.

    rows: run_id, from_region, to_region, rate_bps, packets_sent, packets_queue_dropped, packets_lost,
        packets_device_dropped, dropped_share, verdict; directions that carried nothing are left out. The verdict is
        "outside" if the queue of a link without a rate dropped anything, if loss was counted but none requested, or if
        the receiving device refused packets.
    """

    @property
    def sentence(self) -> str:
        rows = self.rows
        return (
            f"The queues of links dropped {number(rows.packets_queue_dropped.sum())} of "
            f"{count(int(rows.packets_sent.sum()), 'packet')}; {_verdict(rows, 'direction')} "
            "dropped packets where none are allowed."
        )


def link_drops(counters: pd.DataFrame, links: pd.DataFrame) -> LinkDrops:
    """
    Compute the packets dropped in each direction of a link; ParameterError if `links` lacks a direction.

    Parameters
    ----------
    counters, links : DataFrame
        Tables `link_counters` and `links` of the same runs.
    """
    joined = counters.merge(
        links[[*LINK_KEY, "rate_bps", "loss"]], on=LINK_KEY, how="left", validate="one_to_one", indicator=True
    )
    for row in joined[joined._merge != "both"].itertuples():
        raise ParameterError(f"no link from {row.from_region} to {row.to_region} in run {row.run_id}")
    joined = joined[joined.packets_sent > 0]
    wrong = (
        (joined.rate_bps.isna() & (joined.packets_queue_dropped > 0))
        | ((joined.loss == 0) & (joined.packets_lost > 0))
        | (joined.packets_device_dropped.fillna(0) > 0)
    )
    rows = joined[[*LINK_KEY, "rate_bps", "packets_sent", *DROPPED]].assign(
        dropped_share=joined.packets_queue_dropped / joined.packets_sent, verdict=np.where(wrong, OUTSIDE, WITHIN)
    )
    return LinkDrops(rows.reset_index(drop=True))


class DeviceDrops(RowsResult):
    """
    Kernel drops at the regions' devices, where no link counts them.

    rows: run_id, device, packets_received, packets_dropped_receiving, packets_sent, packets_dropped_sending, verdict:
        "outside" if anything was dropped.
    """

    @property
    def sentence(self) -> str:
        runs = count(self.rows.run_id.nunique(), "run")
        return f"The kernel dropped packets at {_verdict(self.rows, 'device')} in {runs}."


def device_drops(sessions: Sequence[pd.DataFrame]) -> DeviceDrops:
    """Compute the packets dropped by the kernel, per run and device."""
    counters = _together("device_counters", sessions)
    names = ["packets_received", "packets_dropped_receiving", "packets_sent", "packets_dropped_sending"]
    rows = counters.groupby(["run_id", "device"], sort=False)[names].sum().reset_index()
    dropped = rows.packets_dropped_receiving + rows.packets_dropped_sending
    return DeviceDrops(rows.assign(verdict=np.where(dropped > 0, OUTSIDE, WITHIN)))


class Lateness(RowsResult):
    """
    How late an emulator delivered packets: whether the machine was fast enough.

    rows: Per run: run_id, packets_delivered, mean_late_ms (of links, weighted by their packets), worst_late_ms; NaN if
        the emulator does not report it.
    """

    @property
    def sentence(self) -> str:
        reported = self.rows[self.rows.worst_late_ms.notna()]
        if reported.empty:
            return "The emulator does not report how late it delivered packets."
        worst, mean = number(reported.worst_late_ms.max()), number(reported.mean_late_ms.max())
        return (
            f"In {count(len(reported), 'run')} packets were delivered at most {worst} ms late, and in the worst run "
            f"{mean} ms late on average."
        )


def lateness(sessions: Sequence[pd.DataFrame]) -> Lateness:
    """How late packets were delivered, per run."""
    counters = _together("link_counters", sessions)
    rows = []
    for run_id, links in counters.groupby("run_id", sort=False):
        reported = links[links.mean_late_ms.notna()]
        packets = reported.packets_delivered.astype(float)
        mean = np.average(reported.mean_late_ms, weights=packets) if packets.sum() else np.nan
        rows.append((run_id, int(links.packets_delivered.sum()), mean, reported.worst_late_ms.max()))
    return Lateness(pd.DataFrame(rows, columns=["run_id", "packets_delivered", "mean_late_ms", "worst_late_ms"]))


def _together(table: str, sessions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(sessions, ignore_index=True) if len(sessions) else tables.from_rows(table, [])


def _verdict(rows: pd.DataFrame, noun: str) -> str:
    return f"{int((rows.verdict == OUTSIDE).sum()):,} of {count(len(rows), noun)}"
