"""What each producer of a trial reached: whether all had the same share."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent, quantity
from ...stats.result import Result
from ...stats.trials.rates import TrialRates


@dataclass(frozen=True, repr=False)
class ProducerShares(Result):
    """
    Rates of single producers.

    Attributes
    ----------
    producers : DataFrame
        Per setting and producer: `n_trials`, `records_per_s` with `low` and `high` (t over trials), `share` of the
        trial's records with `share_low` and `share_high`, `even_share` (one over the producers).
    trials : DataFrame
        Per trial and producer, as in `TrialRates.shares`.
    level : float
    """

    producers: pd.DataFrame
    trials: pd.DataFrame
    level: float

    def table(self) -> pd.DataFrame:
        """One row per setting and producer."""
        return self.producers

    DRAWN_BY = "producer_shares_figure.producer_shares"

    def __str__(self) -> str:
        said = []
        for name, part in self.producers.groupby("setting", sort=False):
            shares = [
                quantity(each.share, "fraction", each.share_low, each.share_high)
                for each in part.itertuples()
            ]
            uneven = part[(part.share_low > part.even_share) | (part.share_high < part.even_share)]
            even = "an even share lies in every interval" if uneven.empty else "not all alike"
            trials = count(int(part.n_trials.max()), "trial")
            said.append(f"{name}: producers 1 to {len(part)} send {', '.join(shares)} ({trials}; {even}).")
        return " ".join(said)

    def _repr_html_(self) -> str:
        shown = self.producers.assign(producer=self.producers.producer.astype(int) + 1)
        body = shown.to_html(index=False, border=0, float_format=lambda value: number(value), na_rep="")
        said = f"Intervals: {percent(self.level)}, t with the trial as the unit. {self}"
        return f"{body}<p>{escape(said)}</p>"


def producer_shares(found: TrialRates, *, level: float = 0.95) -> ProducerShares:
    """
    Rates and shares of the single producers, over the trials of each setting.

    Of the producers' lines inside the counted seconds; `TrialRates.shares` says what they are without these.
    ParameterError if no trial has any.
    """
    level = check_level(level)
    if found.shares.empty:
        raise ParameterError("no producer of these trials says what it sent")
    rows = []
    for (setting, producer), part in found.shares.groupby(["setting", "producer"], sort=False):
        row = {"setting": setting, "producer": int(producer), "n_trials": len(part)}
        for name, ends in (("records_per_s", ("low", "high")), ("share", ("share_low", "share_high"))):
            values = part[name].to_numpy(dtype=float)
            half = np.nan
            if len(values) > 1:
                reach = stats.t.ppf((1 + level) / 2, len(values) - 1)
                half = reach * values.std(ddof=1) / sqrt(len(values))
            row |= {name: values.mean(), ends[0]: values.mean() - half, ends[1]: values.mean() + half}
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["even_share"] = 1 / frame.groupby("setting").producer.transform("nunique")
    order = {name: k for k, name in enumerate(dict.fromkeys(frame.setting))}
    frame = frame.sort_values(
        ["setting", "producer"], key=lambda column: column.map(order) if column.name == "setting" else column
    )
    return ProducerShares(frame.reset_index(drop=True), found.shares, level)
