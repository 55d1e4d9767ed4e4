"""Mean utilisation of machines and links in the counted seconds of trials."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import pandas as pd

from wanbench.methods.lab import utilisation
from wanbench.methods.lab.utilisation import KEY

from . import processors
from .rates import TrialRates


def mean_use(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Per trial: mean busy_percent and iowait_percent of the busiest machine, and fullest_link, the highest link
    utilisation; NaN if not measured.
    """
    found = rates.rates[KEY].assign(busy_percent=nan, iowait_percent=nan, fullest_link=nan).set_index(KEY)
    if "metrics" in tables and len(tables["metrics"]):
        metrics = rates.marked(tables["metrics"][tables["metrics"].source == "sysstat"])
        use = processors.processor_use(metrics[metrics.counts]).groupby(KEY)
        found.update(use[["busy_percent", "iowait_percent"]].max())
    if "link_samples" in tables and len(tables["link_samples"]):
        windows = rates.marked(utilisation.windows(tables["link_samples"]))
        each = windows[windows.counts].groupby([*KEY, "link_from", "link_to"]).utilisation.mean()
        found.update(each.groupby(level=KEY).max().rename("fullest_link").to_frame())
    return found.reset_index()
