"""
Whether trials keep their rate over the seconds that count: the later half of these against the earlier one.

A warm-up that was cut too short shows as a rate that still rises. The trial is the unit.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...formatting import count, number, percent, quantity

COLUMNS = ["setting", "n_trials", "later_over_earlier", "low", "high", "level"]


def settled(seconds: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """
    Per setting, how many times as many batches came in the later half of the counted seconds as in the earlier one.

    Geometric mean over trials, with an interval by t on their logarithms that holds for all settings together
    (Bonferroni), null for a single trial. A second in the middle belongs to neither half. Trials without a batch in a
    half, and those without a log, are not in it.

    Parameters
    ----------
    seconds : DataFrame
        As `TrialRates.seconds`.

    Examples
    --------
    >>> about = {"run_id": "r", "attempt": 1, "setting": "a"}
    >>> rows = [{**about, "test_id": t, "second": s, "batches": 100 + 10 * s} for t in "xyz" for s in range(4)]
    >>> settled(pd.DataFrame(rows)).later_over_earlier.round(3).tolist()
    [1.19]
    """
    level = check_level(level)
    logs: dict[str, list[float]] = {}
    for key, part in seconds.groupby(["run_id", "test_id", "setting"], sort=False, dropna=False):
        batches = part.sort_values("second").batches.to_numpy(dtype=float)
        half = len(batches) // 2
        earlier, later = batches[:half].sum(), batches[len(batches) - half :].sum()
        if earlier > 0 and later > 0:
            logs.setdefault(key[-1], []).append(np.log(later / earlier))
    several = max(sum(len(each) > 1 for each in logs.values()), 1)
    rows = []
    for setting, each in logs.items():
        middle, half = float(np.mean(each)), nan
        if len(each) > 1:
            reach = stats.t.ppf(1 - (1 - level) / 2 / several, len(each) - 1)
            half = reach * float(np.std(each, ddof=1)) / sqrt(len(each))
        ends = np.exp([middle, middle - half, middle + half])
        rows.append(dict(zip(COLUMNS, (setting, len(each), *ends, level), strict=True)))
    return pd.DataFrame(rows, columns=COLUMNS)


def cautions(found: pd.DataFrame) -> tuple[str, ...]:
    """What must be said of the settings whose trials did not keep their rate."""
    return tuple(
        f"over {row.setting} rates still {'rose' if row.low > 1 else 'fell'} while they counted: the later half of the "
        f"seconds has {quantity(row.later_over_earlier, 'times', row.low, row.high)} the batches of the earlier one "
        f"({percent(row.level)} interval {number(row.low)} to {number(row.high)}; {count(row.n_trials, 'trial')})"
        for row in found[(found.low > 1) | (found.high < 1)].itertuples()
    )
