"""Compare where the thesis holds by measurement with where it holds by computed limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import Result, text_table
from wanbench.methods.trials.limits import Limits

from .result import Factorial

EQUAL = 1.02  # Factor within which a gain of 1 gives no verdict: the limits are not more accurate


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """
    The gain from halving the delay over the gain from doubling the rate, as fitted and as the limits predict.

    combinations: Per measured combination of levels: `gain`, `low`, `high` and `verdict` of the fit, `predicted_gain`
        and `predicted_verdict` of the lowest limit, and `limit`, its name.
    """

    combinations: pd.DataFrame

    @property
    def sentence(self) -> str:
        rows = self.combinations
        decided = rows[(rows.verdict != "undecided") & (rows.predicted_verdict != "neither")]
        same = int((decided.verdict == decided.predicted_verdict).sum())
        ranks = rows[["gain", "predicted_gain"]].rank().corr().iloc[0, 1]
        ranked = f"; the ranks of their gains correlate by {number(ranks, 2)}" if np.isfinite(ranks) else ""
        return (
            f"Measurement and limits both give a verdict for {len(decided):,} of {count(len(rows), 'combination')} of "
            f"levels, and the same verdict for {same:,} of these{ranked}."
        )

    def table(self) -> pd.DataFrame:
        gains = ["gain", "predicted_gain"]
        logs = self.combinations.assign(**{name: np.log(self.combinations[name]) for name in gains})
        groups = logs.groupby("limit", sort=False)
        means = np.exp(groups[gains].mean())
        means.insert(0, "n_combinations", groups.size())
        for verdict in ("holds", "fails", "undecided"):
            means[verdict] = (logs.verdict == verdict).groupby(logs.limit).sum()
        return means.reset_index()

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.table())


def explain(fitted: Factorial, limits: Limits) -> Explanation:
    """
    Compare the gains that the limits predict with the fitted gains, for each combination.

    Halving the one-way delay subtracts this delay from the RTT. Doubling the rate also doubles the rate that the
    background leaves, because the background is a share of the rate.

    Raises ParameterError: the trials of `limits` lack a factor, or have no combination of the fit.
    """
    factors = fitted.factors
    trials = check_columns("trials", limits.trials, [*factors, "delay_ms"])
    faster = trials.rtt_ms / np.maximum(trials.rtt_ms - trials.delay_ms, 1e-9)
    halved = np.minimum.reduce([trials.by_window * faster, trials.by_rate, trials.by_loss * faster])
    doubled = np.minimum.reduce([trials.by_window, 2 * trials.by_rate, trials.by_loss])
    own = trials[factors].assign(_log=np.log(halved / doubled), limit=trials.limit)
    predicted = own.groupby(factors).agg(_log=("_log", "mean"), limit=("limit", lambda limit: limit.mode().iloc[0]))
    combinations = fitted.combinations.merge(predicted.reset_index(), on=factors)
    if combinations.empty:
        raise ParameterError("no combination of the fit is among the trials of the limits")
    gain = np.exp(combinations.pop("_log"))
    verdict = np.select([gain > EQUAL, gain < 1 / EQUAL], ["holds", "fails"], "neither")
    return Explanation(combinations.assign(predicted_gain=gain, predicted_verdict=verdict))
