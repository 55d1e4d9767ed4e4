"""Where the thesis holds by measurement, beside where it holds by arithmetic on what limits a trial."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import count, number
from ...stats.factorial.result import Factorial
from ...stats.result import Result
from ...stats.trials.limits import Limits

EQUAL = 1.02
"""Gains closer to 1 than this, either way, are taken as neither: the limits that they follow from are that rough."""


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """
    Per combination of levels that was measured: `gain`, `low`, `high`, `verdict` (of the fit), `predicted_gain` (what
    halving the delay multiplies the least limit by, over what doubling the rate does), `predicted_verdict` and
    `limit` (which of the three is the least there).
    """

    places: pd.DataFrame
    factors: list[str]

    def table(self) -> pd.DataFrame:
        """Per limit: combinations, mean gain measured and predicted (geometric), and verdicts."""
        logs = self.places.assign(
            gain=np.log(self.places.gain), predicted_gain=np.log(self.places.predicted_gain)
        )
        groups = logs.groupby("limit", sort=False)
        found = np.exp(groups[["gain", "predicted_gain"]].mean())
        found.insert(0, "n_combinations", groups.size())
        for word in ("holds", "fails", "undecided"):
            found[word] = groups.verdict.apply(lambda each, word=word: int((each == word).sum()))
        return found.reset_index()

    def __str__(self) -> str:
        decided = self.places[
            (self.places.verdict != "undecided") & (self.places.predicted_verdict != "neither")
        ]
        same = int((decided.verdict == decided.predicted_verdict).sum())
        ranks = self.places[["gain", "predicted_gain"]].rank().corr().iloc[0, 1]
        alike = f", and their ranks correlate by {number(ranks, 2)}" if np.isfinite(ranks) else ""
        return (
            f"Of {count(len(self.places), 'combination')} of levels {len(decided):,} are decided by measurement and by "
            f"the limits; in {same:,} of these both say the same{alike}."
        )

    def _repr_html_(self) -> str:
        body = self.table().to_html(index=False, border=0, float_format=lambda value: number(value))
        return f"{body}<p>{escape(str(self))}</p>"


def explain(fitted: Factorial, limits: Limits) -> Explanation:
    """
    Put the limits' own answer beside the fit's, combination by combination.

    Halving the one-way delay takes that delay off the RTT; doubling the rate doubles what the background leaves of it,
    as it does where the background is a share of the rate.

    Raises
    ------
    ParameterError
        If the trials of `limits` lack the factors, or none of the combinations.
    """
    factors = fitted.factors
    missing = [name for name in (*factors, "delay_ms") if name not in limits.trials]
    if missing:
        raise ParameterError(f"the trials lack {', '.join(missing)}")
    trials = limits.trials
    faster = trials.rtt_ms / np.maximum(trials.rtt_ms - trials.delay_ms, 1e-9)
    halved = np.minimum.reduce([trials.by_window * faster, trials.by_rate, trials.by_loss * faster])
    doubled = np.minimum.reduce([trials.by_window, 2 * trials.by_rate, trials.by_loss])
    own = trials[factors].assign(_log=np.log(halved / doubled), limit=trials.limit)
    groups = own.groupby(factors)
    predicted = groups.agg(
        _log=("_log", "mean"), limit=("limit", lambda each: each.mode().iloc[0])
    ).reset_index()
    places = fitted.combinations.merge(predicted, on=factors)
    if places.empty:
        raise ParameterError("no combination of the fit is among the trials of the limits")
    gain = np.exp(places.pop("_log"))
    verdict = np.select([gain > EQUAL, gain < 1 / EQUAL], ["holds", "fails"], "neither")
    return Explanation(places.assign(predicted_gain=gain, predicted_verdict=verdict), factors)
