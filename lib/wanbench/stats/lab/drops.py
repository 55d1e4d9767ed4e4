"""Where packets were dropped: in the queue of links that have a rate, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...errors import ParameterError
from .calibration import OUTSIDE, WITHIN

KEY = ["run_id", "from_region", "to_region"]


def drops(counters: pd.DataFrame, links: pd.DataFrame) -> pd.DataFrame:
    """
    Per direction of a link what its queue dropped, and whether packets vanished where they must not.

    "outside" where the queue of a link without a rate dropped anything, where loss was counted and none was
    requested, or where the receiving device refused packets.

    Parameters
    ----------
    counters, links : DataFrame
        Tables `link_counters` and `links` of the same runs.

    Returns
    -------
    DataFrame
        run_id, from_region, to_region, rate_bps, packets_sent, packets_queue_dropped, packets_lost,
        packets_device_dropped, dropped_share, verdict; directions that carried nothing are left out.
    """
    joined = counters.merge(
        links[[*KEY, "rate_bps", "loss"]], on=KEY, how="left", validate="one_to_one", indicator=True
    )
    if (joined._merge != "both").any():
        unknown = joined[joined._merge != "both"].iloc[0]
        raise ParameterError(
            f"no link from {unknown.from_region} to {unknown.to_region} in run {unknown.run_id}"
        )
    joined = joined[joined.packets_sent > 0]
    wrong = (
        (joined.rate_bps.isna() & (joined.packets_queue_dropped > 0))
        | ((joined.loss == 0) & (joined.packets_lost > 0))
        | (joined.packets_device_dropped.fillna(0) > 0)
    )
    counted = ["packets_sent", "packets_queue_dropped", "packets_lost", "packets_device_dropped"]
    return (
        joined[[*KEY, "rate_bps", *counted]]
        .assign(
            dropped_share=joined.packets_queue_dropped / joined.packets_sent,
            verdict=wrong.map({True: OUTSIDE, False: WITHIN}),
        )
        .reset_index(drop=True)
    )


def outside_links(sessions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """
    What the kernel dropped at the regions' devices, per run and device, before or after any link could count it.

    "outside" where it dropped anything.

    Parameters
    ----------
    sessions : sequence of DataFrame
        Tables `device_counters`.

    Returns
    -------
    DataFrame
        run_id, device, packets_received, packets_dropped_receiving, packets_sent, packets_dropped_sending, verdict.
    """
    counters = pd.concat(sessions, ignore_index=True)
    names = ["packets_received", "packets_dropped_receiving", "packets_sent", "packets_dropped_sending"]
    summed = counters.groupby(["run_id", "device"], sort=False)[names].sum().reset_index()
    dropped = summed.packets_dropped_receiving + summed.packets_dropped_sending
    return summed.assign(verdict=(dropped > 0).map({True: OUTSIDE, False: WITHIN}))


def lateness(sessions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """
    How late an emulator delivered packets, per run: whether the machine was fast enough.

    Parameters
    ----------
    sessions : sequence of DataFrame
        Tables `link_counters`.

    Returns
    -------
    DataFrame
        run_id, packets_delivered, mean_late_ms (of links, weighted by their packets), worst_late_ms; NaN where the
        emulator does not tell.
    """
    counters = pd.concat(sessions, ignore_index=True)
    rows = []
    for run_id, links in counters.groupby("run_id", sort=False):
        known = links[links.mean_late_ms.notna()]
        packets = known.packets_delivered.astype(float)
        mean = np.average(known.mean_late_ms, weights=packets) if packets.sum() else np.nan
        rows.append((run_id, int(links.packets_delivered.sum()), mean, known.worst_late_ms.max()))
    return pd.DataFrame(rows, columns=["run_id", "packets_delivered", "mean_late_ms", "worst_late_ms"])
