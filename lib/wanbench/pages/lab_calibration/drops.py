"""Count dropped packets and measure how late packets were delivered, to see whether the lab distorted a test."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.lab.verdicts import LINK_KEY, OUTSIDE, WITHIN
from wanbench.methods.result import RowsResult
from wanbench.runs import Run

DROPPED = ["packets_queue_dropped", "packets_lost", "packets_device_dropped"]


class LinkDrops(RowsResult):
    """
    Packets dropped in each direction of each link that carried packets.

    rows: One row per direction: run_id, from_region, to_region, rate_bps, packets_sent, packets_queue_dropped,
        packets_lost (by emulated loss), packets_device_dropped, dropped_share (by the queue) and verdict. The verdict
        is "outside" if the queue of a link without a rate dropped packets, if packets were lost although no loss was
        requested, or if the receiving device rejected packets.
    """

    @property
    def sentence(self) -> str:
        rows, wrong = self.rows, int((self.rows.verdict == OUTSIDE).sum())
        return (
            f"The queues of the links dropped {number(rows.packets_queue_dropped.sum())} of "
            f"{count(int(rows.packets_sent.sum()), 'packet')}; {wrong:,} of {count(len(rows), 'direction')} "
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
    How much later than requested an emulator delivered packets, which shows whether the machine was fast enough.

    rows: One row per part of the measurement: part, packets_delivered, mean_late_ms (over all packets), worst_late_ms;
        both are NaN if the emulator does not report lateness.
    """

    @property
    def sentence(self) -> str:
        reported = self.rows[self.rows.worst_late_ms.notna()]
        if reported.empty:
            return "The emulator does not report how late it delivered packets."
        worst, mean = number(reported.worst_late_ms.max()), number(reported.mean_late_ms.max())
        return (
            f"In {count(len(reported), 'part')} no packet was delivered more than {worst} ms late; the mean "
            f"lateness was {mean} ms in the worst part."
        )


def lateness(parts: Mapping[str, Mapping[str, pd.DataFrame]]) -> Lateness:
    """Summarise how late packets were delivered in each part; `parts` is the result of `by_part`."""
    rows = []
    for part, tables in parts.items():
        links = tables["link_counters"]
        reported = links[links.mean_late_ms.notna()]
        packets = reported.packets_delivered.astype(float)
        mean = np.average(reported.mean_late_ms, weights=packets) if packets.sum() else np.nan
        rows.append((part, int(links.packets_delivered.sum()), mean, reported.worst_late_ms.max()))
    return Lateness(pd.DataFrame(rows, columns=["part", "packets_delivered", "mean_late_ms", "worst_late_ms"]))


def by_part(run: Run, tables: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, pd.DataFrame]]:
    """Split the tables of a run planned by `design.plan_of` by part; tables without regions are left out."""
    regions, placed = {}, {name: frame for name, frame in tables.items() if "from_region" in frame}
    for test in run.plan["tests"]:
        regions.setdefault(test["setting"], set()).update((test["from_region"], test["to_region"]))
    return {
        part: {name: frame[frame.from_region.isin(ends)] for name, frame in placed.items()}
        for part, ends in regions.items()
    }
