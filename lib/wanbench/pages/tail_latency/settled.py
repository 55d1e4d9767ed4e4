"""Was the warm-up long enough? The later half of the counted seconds against the earlier half."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tails import quantile_intervals as order

from .open_loop import of_open_loop
from .trials import SystemTrials

METHOD = "percentile in the later half of a trial's seconds over that in the earlier; t on logarithms, trials as units"
ASSUMPTION = "Trials are independent; drift within a trial has the same direction in all of them"


def settled(
    trials: SystemTrials,
    tables: Mapping[str, pd.DataFrame],
    *,
    q: float = 0.99,
    what: str = "end to end",
    level: float = 0.95,
) -> Estimate:
    """
    Change of a percentile from the earlier to the later half of the counted seconds, over trials that kept up.

    A trial of a few seconds is too short to test for stationarity; all trials together suffice. An interval that
    contains 1 shows no significant drift.

    Raises
    ------
    MissingDataError
        If no trial that kept up has two seconds.
    """
    histograms = trials.part(tables["open_loop_histograms"])
    ratios = []
    for _, part in histograms[(histograms.what == what) & ~histograms.warm_up].groupby(KEY):
        windows = np.sort(part.window.unique())
        half = len(windows) // 2
        if not half:
            continue
        early, late = (
            of_open_loop(part[part.window.isin(own)], what=what).quantile(q)
            for own in (windows[:half], windows[-half:])
        )
        if np.isfinite([early, late]).all() and early > 0:
            ratios.append(late / early)
    if not ratios:
        raise MissingDataError("no trial that kept up has two counted seconds.")
    p = order.name(q)
    return geometric_mean(
        ratios,
        level,
        quantity=f"{p}, later half of a trial over the earlier",
        claim=f"In the later half of the counted seconds, {p} is {{}} that of the earlier half",
        method=METHOD,
        assumption=ASSUMPTION,
    )
