"""Compare the measured ratio of two links with the ratio that the limits of their trials predict."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.formatting import count, percent
from wanbench.methods.result import Estimate, Result
from wanbench.methods.trials.limits import Limits, ratio_of_units

from .two_links import LINKS, VALUE, link_trials, paired_trials

LABELS = {"predicted": "predicted", "measured": "measured", "reached": "measured over predicted"}


@dataclass(frozen=True, repr=False)
class PredictedRatio(Result):
    """
    The predicted and the measured ratio of link b to link a.

    predicted: Ratio of the lowest limits of the trials.
    measured: Ratio of the measured rates.
    limits: Per link, the number of trials for which each limit is the lowest.
    """

    predicted: Estimate
    measured: Estimate
    measured_over_predicted: Estimate
    limits: dict[str, dict[str, int]]

    TITLE = "Ratios of batches per second"

    @property
    def sentence(self) -> str:
        by = ", ".join(
            f"“{name}” by " + " and ".join(f"the {limit} in {count(n, 'trial')}" for limit, n in counts.items())
            for name, counts in self.limits.items()
        )
        off, measured = self.measured_over_predicted, self.measured
        verdict = "a significant difference" if off.low > 1 or off.high < 1 else "not a significant difference"
        verdict = verdict if isfinite(off.low) else "based on too few trials for an interval"
        return (
            f"Settings and pings predict {self.predicted.formatted} as many batches per second over “{LINKS[1]}” "
            f"as over “{LINKS[0]}”. The measured ratio is {measured.formatted} ({percent(measured.level)} "
            f"interval {measured.formatted_interval or 'none'}; geometric mean of {measured.basis}), which is "
            f"{off.formatted} the prediction (interval {off.formatted_interval or 'none'}). This is {verdict}. Trials "
            f"were limited as follows: {by}."
        )


def predicted_ratio(limits: Limits) -> PredictedRatio:
    """
    Predict the ratio of two links from the lowest limit of each trial, and compare it with the measured ratio.

    Raises ParameterError: a link has no measured trial.
    """
    trials = link_trials(limits.source, VALUE)
    columns = ["run_id", "test_id", *LABELS, "limit"]
    trials = trials.merge(limits.trials[columns], on=columns[:2])
    ratios = [_ratio(trials, column, label, limits.level) for column, label in LABELS.items()]
    counts = {name: trials.limit[trials.link == name].value_counts().to_dict() for name in LINKS}
    return PredictedRatio(*ratios, counts)


def _ratio(trials: pd.DataFrame, column: str, label: str, level: float) -> Estimate:
    """Estimate the ratio of link b to link a from pairs of trials; with fewer than two pairs, from unpaired trials."""
    pairs = paired_trials(trials, column)
    claim = f"The {label} ratio of {LINKS[1]} to {LINKS[0]} is {{}}"
    sides = [pairs.ratio] if len(pairs) > 1 else [trials[column][trials.link == name] for name in LINKS]
    return ratio_of_units(sides, f"ratio, {label}", claim, "pair" if len(pairs) > 1 else "trial", level)
