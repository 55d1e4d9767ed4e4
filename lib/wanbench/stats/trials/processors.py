"""Whether the machine held trials up: how busy its processors were, by sysstat, and what trials reached meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from math import exp, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, number
from ..lab.utilisation import KEY
from ..result import Estimate, Result
from .limits import Limits

STEP_PERCENT = 10.0
"""What is said of the processors is said per so many per cent of their time: a difference that trials do show."""
NAMES = {"user_percent": ("usr", "user"), "system_percent": ("sys", "system"), "iowait_percent": ("iowait",),
         "steal_percent": ("steal",), "idle_percent": ("idle",)}  # fmt: skip
METHOD = (
    "least squares of the log of measured over allowed on the busy part of the processors' time, each setting with a "
    "level of its own; t with {} degrees of freedom, trials as units; sysstat"
)
ASSUMPTION = (
    "Trials of a setting differ in nothing else that slows them; that a trial which carries more keeps processors "
    "busier works against what is said"
)


@dataclass(frozen=True, repr=False)
class HeldUp(Result):
    """
    What trials reached of their limit, beside how busy the processors were.

    Attributes
    ----------
    slope : Estimate
        What a trial reaches where the processors are busier by 10 per cent of their time, over what it reaches else, at
        the same setting; NaN where no setting has two trials.
    trials : DataFrame
        Per trial: run_id, test_id, attempt, setting, rate_bps, limit, `reached` (measured over what the limit allows),
        `busy_percent` (of the busiest machine, mean over the counted seconds).
    """

    slope: Estimate
    trials: pd.DataFrame

    DRAWN_BY = "processors_figure.held_up"

    def range_sentence(self) -> str:
        """What the least and the most busy trial reached."""
        least, most = (
            self.trials.loc[at]
            for at in (self.trials.busy_percent.idxmin(), self.trials.busy_percent.idxmax())
        )
        return (
            f"The trial with the least busy processors ({number(least.busy_percent, 0)} % of their time) reached "
            f"{number(least.reached, 2)} of what its limit allows, the one with the busiest "
            f"({number(most.busy_percent, 0)} %) {number(most.reached, 2)}."
        )

    def __str__(self) -> str:
        return f"{self.slope} {self.range_sentence()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding of the slope, with what the least and the most busy trial reached."""
        return replace(self.slope.finding(name, page), sentence=str(self))


def processors(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    How busy the processors of each machine were in each test.

    Busy is what is neither idle nor waiting for a disk; time stolen by others of the same physical machine is busy.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics; rows of sysstat on processors are in use.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, host, n_samples; the means user_percent, system_percent, iowait_percent,
        steal_percent, idle_percent and busy_percent over all processors; greatest_busy_percent and
        greatest_steal_percent of a sample; busiest_cpu_percent, the mean over samples of the busiest single processor.
    """
    rows = metrics[(metrics.source == "sysstat") & metrics.subject.str.fullmatch(r"cpu (all|\d+)")]
    keys = [*KEY, "host", "at_utc", "subject"]
    wide = pd.DataFrame({name: _shares(rows, keys, said) for name, said in NAMES.items()})
    wide["busy_percent"] = (100 - wide.idle_percent - wide.iowait_percent).clip(0, 100)
    wide = wide.reset_index()
    whole = wide[wide.subject == "cpu all"]
    single = (
        wide[wide.subject != "cpu all"].groupby([*KEY, "host", "at_utc"], dropna=False).busy_percent.max()
    )
    groups = whole.groupby([*KEY, "host"], dropna=False)
    means = groups[[*NAMES, "busy_percent"]].mean()
    found = means.assign(
        greatest_busy_percent=groups.busy_percent.max(),
        greatest_steal_percent=groups.steal_percent.max(),
        busiest_cpu_percent=single.groupby(level=[*KEY, "host"], dropna=False).mean(),
    )
    found.insert(0, "n_samples", groups.size())
    return found.reset_index()


def _shares(rows, keys, names):
    part = rows[rows.metric.isin(names)]
    return part.drop_duplicates(keys).set_index(keys).value


def held_up(limits: Limits, processors: pd.DataFrame) -> HeldUp:
    """
    Whether trials reach less of their limit where the processors are busier.

    No threshold says when a machine is too busy: one that is 75 % busy on average over a second makes threads wait
    within it. So what trials reached is put beside how busy it was, among trials of one setting and link rate.

    Parameters
    ----------
    limits : Limits
        What `stats.limits` found of the trials.
    processors : DataFrame
        As `processors` returns it, of the seconds that count (`TrialRates.marked`).

    Raises
    ------
    ParameterError
        No trial has both.
    """
    busy = processors.groupby(KEY, dropna=False).busy_percent.max().rename("busy_percent").reset_index()
    trials = limits.trials.drop(columns="busy_percent", errors="ignore").merge(busy, on=KEY)
    trials = trials[trials.busy_percent.notna()].reset_index(drop=True)
    if trials.empty:
        raise ParameterError(
            f"no trial of {len(limits.trials)} has samples of processors in its counted seconds"
        )
    frame = pd.DataFrame({"busy": trials.busy_percent / STEP_PERCENT, "log": np.log(trials.reached)})
    groups = frame.groupby([trials.setting, trials.rate_bps], dropna=False)
    apart = frame - groups.transform("mean")
    total, freedom = float(apart.busy @ apart.busy), len(frame) - groups.ngroups - 1
    slope = float(apart.busy @ apart.log) / total if total > 0 else nan
    half, notes = nan, ()
    if freedom > 0 and total > 0:
        rest = float(((apart.log - slope * apart.busy) ** 2).sum())
        half = stats.t.ppf((1 + limits.level) / 2, freedom) * sqrt(rest / freedom / total)
    elif freedom <= 0:
        notes = ("too few trials of one setting to say how what they reach goes with busy processors",)
    else:
        notes = (
            "processors were equally busy in all trials of a setting, so what that changes cannot be said",
        )
    contrast = Estimate(
        quantity="reached, busier processors over less busy ones",
        claim=f"At the same setting, trials with processors busier by {STEP_PERCENT:g} % of their time reached {{}} as "
        "much of what their limit allows",
        estimate=exp(slope),
        low=exp(slope - half),
        high=exp(slope + half),
        unit="times",
        n=len(trials),
        basis=count(len(trials), "trial"),
        method=METHOD.format(max(freedom, 0)),
        assumption=ASSUMPTION,
        level=limits.level,
        warnings=notes,
    )
    columns = [*KEY, "setting", "rate_bps", "limit", "reached", "busy_percent"]
    return HeldUp(contrast, trials[columns])
