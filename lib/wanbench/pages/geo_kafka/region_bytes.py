"""
Bytes on the links between regions during whole trials, and records appended to the log meanwhile.

Links are counted from before the load to after it. At the edges of a part of a trial, links and logs would count
different records.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from wanbench.methods.lab.utilisation import KEY, LINK
from wanbench.methods.trials.counted_seconds import one_replica
from wanbench.methods.trials.rates import TrialRates


def region_bytes(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    One row per trial whose links were all sampled: KEY, link_bytes, records.

    Parameters
    ----------
    tables : mapping
        Tables of the run: links, link_samples, batches.

    Returns
    -------
    DataFrame
        `link_bytes`: bytes on all links together, including headers and packets that were lost afterwards. `records`:
        records in the log, each counted on one replica.
    """
    samples = rates.part(tables["link_samples"])
    groups = samples.groupby(LINK)[["bytes_delivered", "bytes_lost"]]
    carried = (groups.max() - groups.min()).sum(axis=1).groupby(level=KEY)
    every = tables["links"].groupby("run_id").size()
    complete = carried.size() == carried.size().index.get_level_values("run_id").map(every)
    total = carried.sum()[complete].rename("link_bytes").astype(float)
    records = one_replica(rates.part(tables["batches"])).groupby(KEY).records.sum()
    return total.reset_index().merge(records.reset_index(), on=KEY)
