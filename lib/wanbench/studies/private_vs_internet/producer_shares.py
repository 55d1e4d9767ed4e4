"""The rate of each producer of a trial, and whether all had the same share."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, interval, percent, quantity
from ...stats.result import RowsResult
from ...stats.trials.means import half_width
from ...stats.trials.rates import TrialRates


@dataclass(frozen=True, repr=False)
class ProducerShares(RowsResult):
    """
    Rates of single producers.

    Attributes
    ----------
    rows : DataFrame
        Per setting and producer: `n_trials`, `records_per_s` with `low` and `high` (t over trials), `share` of the
        trial's records with `share_low` and `share_high`, `even_share` (one over the producers).
    trials : DataFrame
        Per trial and producer, as in `TrialRates.shares`.
    level : float
    """

    trials: pd.DataFrame
    level: float

    DRAWN_BY = "producer_shares_figure.producer_shares"

    @property
    def sentence(self) -> str:
        """The shares of each setting's producers, and whether every interval contains an even share."""
        listed = []
        for name, part in self.rows.groupby("setting", sort=False):
            shares = ", ".join(
                quantity(row.share, "fraction", row.share_low, row.share_high) for row in part.itertuples()
            )
            uneven = ((part.share_low > part.even_share) | (part.share_high < part.even_share)).any()
            even = "not all alike" if uneven else "every interval contains an even share"
            trials = count(int(part.n_trials.max()), "trial")
            listed.append(f"{name}: producers 1 to {len(part)} send {shares} ({trials}; {even}).")
        return " ".join([*listed, f"Intervals: {percent(self.level)}, t with the trial as the unit."])

    def shown(self) -> pd.DataFrame:
        """The rows with intervals, producers counted from 1."""
        rows = []
        for row in self.rows.itertuples():
            rate, rate_ends = interval(row.records_per_s, row.low, row.high, "records/s")
            share, share_ends = interval(row.share, row.share_low, row.share_high, "fraction")
            about = (row.setting, f"{row.producer + 1}", f"{row.n_trials:,}")
            rows.append((*about, rate, rate_ends, share, share_ends, quantity(row.even_share, "fraction")))
        ends = f"{percent(self.level)} interval"
        heads = [
            "setting",
            "producer",
            "trials",
            "rate",
            f"rate, {ends}",
            "share",
            f"share, {ends}",
            "even share",
        ]
        return pd.DataFrame(rows, columns=heads)


def producer_shares(rates: TrialRates, *, level: float = 0.95) -> ProducerShares:
    """
    Rates and shares of the single producers, over the trials of each setting, from `TrialRates.shares`.

    ParameterError if no trial has any.
    """
    level = check_level(level)
    if rates.shares.empty:
        raise ParameterError("no producer of these trials reports what it sent")
    rows = []
    for (setting, producer), part in rates.shares.groupby(["setting", "producer"], sort=False):
        row = {"setting": setting, "producer": int(producer), "n_trials": len(part)}
        for name, ends in (("records_per_s", ("low", "high")), ("share", ("share_low", "share_high"))):
            values = part[name].to_numpy(dtype=float)
            mean, half = values.mean(), half_width(values, level)
            row |= {name: mean, ends[0]: mean - half, ends[1]: mean + half}
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["even_share"] = 1 / frame.groupby("setting").producer.transform("nunique")
    order = {name: k for k, name in enumerate(dict.fromkeys(frame.setting))}
    frame = frame.sort_values(
        ["setting", "producer"], key=lambda column: column.map(order) if column.name == "setting" else column
    )
    return ProducerShares(frame.reset_index(drop=True), rates.shares, level)
