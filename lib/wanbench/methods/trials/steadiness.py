"""
Test whether trials keep their rate: compare the later half of the counted seconds with the earlier half.

If the warm-up is too short, the rate still rises in the counted seconds. The trial is the unit of replication.
"""

from typing import Any

import numpy as np
import pandas as pd

from wanbench.formatting import count, interval, percent
from wanbench.methods.result import LEVEL, RowsResult
from wanbench.methods.result.means import half_width

COLUMNS = ["setting", "n_trials", "later_over_earlier", "low", "high", "level"]
TOO_WIDE = np.log(2)  # An interval that contains both 1/2 and 2 does not show whether the warm-up was long enough.
MAX_LISTED = 6  # Maximum number of settings in a sentence; all are in the table.


class Steadiness(RowsResult):
    """
    The ratio of batches in the later half of the counted seconds to batches in the earlier half.

    rows: Per setting: setting, n_trials, later_over_earlier (geometric mean over trials), low, high, level. The
        intervals (t on the logarithms) are simultaneous over all settings (Bonferroni); they are null for too few
        trials.
    """

    @property
    def sentence(self) -> str:
        if self.rows.empty:
            return "No trial has seconds to compare."
        few, shown = self.rows[self.rows.low.isna()], self.rows[self.rows.low.notna()]
        listed = [f"“{row.setting}” {_ratio(row)}" for row in shown.head(MAX_LISTED).itertuples()]
        more = f"; and {len(shown) - MAX_LISTED} more settings" if len(shown) > MAX_LISTED else ""
        start = "Batches in the later half of the counted seconds, divided by those in the earlier half"
        texts = [f"{start}: {'; '.join(listed)}{more}."] if listed else []
        if len(few):
            trials = count(int(few.n_trials.max()), "trial")
            texts.append(
                f"Whether the warm-up was long enough is not shown for {count(len(few), 'setting')}: {trials} of a "
                "setting cannot show it."
            )
        return " ".join(texts)

    @property
    def cautions(self) -> tuple[str, ...]:
        unsteady = self.rows[(self.rows.low > 1) | (self.rows.high < 1)]
        return tuple(
            f"in trials of “{row.setting}” rates still {'rose' if row.low > 1 else 'fell'} in the counted seconds: the "
            f"later half has {_ratio(row)} the batches of the earlier half"
            for row in unsteady.itertuples()
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row in self.rows.itertuples():
            ratio, ends = interval(row.later_over_earlier, row.low, row.high, "times")
            rows.append((row.setting, f"{row.n_trials:,}", ratio, ends or "too few trials"))
        level = percent(self.rows.level.max()) if len(rows) else "no"
        return pd.DataFrame(rows, columns=["setting", "trials", "later over earlier", f"{level} interval"])


def _ratio(row: Any) -> str:
    ratio, ends = interval(row.later_over_earlier, row.low, row.high, "times")
    return f"{ratio} ({percent(row.level)} interval {ends}; {count(row.n_trials, 'trial')})"


def steadiness(seconds: pd.DataFrame) -> Steadiness:
    """
    Compare the batches in the later half of the counted seconds with those in the earlier half.

    A second in the middle belongs to neither half. Trials without a log, or without a batch in one half, are left out.

    seconds: As `TrialRates.seconds`.

    >>> about = {"run_id": "r", "attempt": 1, "setting": "a"}
    >>> rows = [{**about, "test_id": t, "second": s, "batches": 100 + 10 * s} for t in "xyz" for s in range(4)]
    >>> steadiness(pd.DataFrame(rows)).rows.later_over_earlier.round(3).tolist()
    [1.19]
    """
    logs: dict[str, list[float]] = {}
    for key, part in seconds.groupby(["run_id", "test_id", "setting"], sort=False, dropna=False):
        batches = part.sort_values("second").batches.to_numpy(dtype=float)
        half = len(batches) // 2
        earlier, later = batches[:half].sum(), batches[len(batches) - half :].sum()
        if earlier > 0 and later > 0:
            logs.setdefault(key[-1], []).append(np.log(later / earlier))
    several = max(sum(len(own) > 1 for own in logs.values()), 1)
    rows = []
    for setting, own in logs.items():
        middle, half = np.mean(own), half_width(own, 1 - (1 - LEVEL) / several)
        if middle - half < -TOO_WIDE and middle + half > TOO_WIDE:
            half = np.nan
        rows.append((setting, len(own), *np.exp([middle, middle - half, middle + half]), LEVEL))
    return Steadiness(pd.DataFrame(rows, columns=COLUMNS))
