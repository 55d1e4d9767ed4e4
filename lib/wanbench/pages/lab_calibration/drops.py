"""Count the packets that links dropped, and how late packets were delivered, to see if the lab distorted a test."""

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
    Packets dropped in each direction of each link that carried packets.

    rows: run_id, from_region, to_region, rate_bps, packets_sent, packets_queue_dropped, packets_lost,
        packets_device_dropped, dropped_share, verdict. The verdict is "outside" if a link without a rate dropped
        packets in its queue, if packets were lost although no loss was requested, or if the receiving device refused
        packets.
    """

    @property
    def sentence(self) -> str:
        rows = self.rows
        return (
            f"The queues of the links dropped {number(rows.packets_queue_dropped.sum())} of "
            f"{count(int(rows.packets_sent.sum()), 'packet')}; {_verdict(rows, 'direction')} "
            "dropped packets where none should be dropped."
        )


def link_drops(counters: pd.DataFrame, links: pd.DataFrame) -> LinkDrops:
    """
    Count the packets dropped in each direction, from tables `link_counters` and `links` of the same runs.

    Raises ParameterError: `links` lacks a direction.
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


class Lateness(RowsResult):
    """
    How late an emulator delivered packets, which shows whether the machine was fast enough.

    rows: Per run: run_id, packets_delivered, mean_late_ms (over all packets), worst_late_ms; NaN if the emulator does
        not report lateness.
    """

    @property
    def sentence(self) -> str:
        reported = self.rows[self.rows.worst_late_ms.notna()]
        if reported.empty:
            return "The emulator does not report how late it delivered packets."
        worst, mean = number(reported.worst_late_ms.max()), number(reported.mean_late_ms.max())
        return (
            f"In {count(len(reported), 'run')} no packet was delivered more than {worst} ms late; the mean "
            f"lateness was {mean} ms in the worst run."
        )


def lateness(sessions: Sequence[pd.DataFrame]) -> Lateness:
    """Summarise, for each run, how late packets were delivered, from tables `link_counters`."""
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
