"""Processor utilisation by sysstat, and whether busier processors cost throughput."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Result

from .limits import Limits
from .means import ratio_estimate

FULL_PERCENT = 90.0
"""Processors that are busy for this share of the counted seconds on average are full in some of them."""
STEP_PERCENT = 10.0
"""The effect is stated per this many percentage points of utilisation: a typical difference between trials."""
NAMES = {"user_percent": ("usr", "user"), "system_percent": ("sys", "system"), "iowait_percent": ("iowait",),
         "steal_percent": ("steal",), "idle_percent": ("idle",)}  # fmt: skip
METHOD = (
    "least squares of the log of measured over allowed on the busy part of the processors' time, each setting with its "
    "own level; t with {} degrees of freedom, trials as units; sysstat"
)
ASSUMPTION = (
    "Nothing else slows trials of one setting; a trial that carries more keeps processors busier, which "
    "masks the effect"
)


@dataclass(frozen=True, repr=False)
class ProcessorEffect(Result):
    """
    The share of their limit that trials reached, against processor utilisation.

    Attributes
    ----------
    slope : Estimate
        The factor on the share of its limit that a trial reaches if the processors are busy for a further 10 % of their
        time, at the same setting; NaN if no setting has two trials.
    trials : DataFrame
        Per trial: run_id, test_id, attempt, setting, rate_bps, limit, `reached` (measured rate over limit),
        `busy_percent` (of the busiest machine, mean over the counted seconds).
    """

    slope: Estimate
    trials: pd.DataFrame

    DRAWN_BY = "processors_figure.processor_effect"

    @property
    def sentence(self) -> str:
        """The slope, and per setting how busy processors were and what share of its limit it reached."""
        means = self._means()
        listed = "; ".join(
            f"{row.Index} reached {number(row.reached, 2)} of its limit with processors "
            f"{number(row.busy_percent, 0)} % busy"
            for row in means.itertuples()
        )
        return f"{self.slope.sentence} On average {listed}."

    def _means(self) -> pd.DataFrame:
        """Per setting, at the highest rate of the link: mean busy_percent and reached."""
        rates = self.trials.rate_bps.astype("float64")
        rows = self.trials[rates.isna() | (rates == rates.max())]
        return rows.groupby("setting", sort=False)[["busy_percent", "reached"]].mean()

    @property
    def full(self) -> tuple[str, ...]:
        """The settings that kept the processors full, at the highest rate of the link."""
        busy = self._means().busy_percent
        return tuple(busy.index[busy >= FULL_PERCENT])

    @property
    def cautions(self) -> tuple[str, ...]:
        """First the settings that the machine slowed down, one each; then those of the slope."""
        means = self._means()
        notes = tuple(
            f"processors were full ({number(means.busy_percent[name], 0)} % busy) with {name}, which reached "
            f"{number(means.reached[name], 2)} of its limit: on a larger machine it may reach more"
            for name in self.full
        )
        return (*notes, *super().cautions)

    def bounding(self, ratio: Estimate | None, of: str, over: str) -> Estimate | None:
        """
        The ratio of setting `of` to setting `over`, with an open end where processors were full: on a larger machine
        such a setting may reach more, so the ratio has no upper end if it is `of`, and no lower one if it is `over`.
        """
        if ratio is None or not {of, over} & {*self.full}:
            return ratio
        return replace(
            ratio,
            low=-inf if over in self.full else ratio.low,
            high=inf if of in self.full else ratio.high,
            ends=None,
            warnings=(*self.cautions[: len(self.full)], *ratio.warnings),
        )


def processor_use(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    Processor utilisation of each machine in each test.

    Busy is all but idle and iowait, so steal time counts as busy.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics; rows of sysstat on processors are used.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, host, n_samples; the means user_percent, system_percent, iowait_percent,
        steal_percent, idle_percent and busy_percent over all processors; max_busy_percent and max_steal_percent of a
        sample; busiest_cpu_percent, the mean over samples of the busiest single processor.
    """
    rows = metrics[(metrics.source == "sysstat") & metrics.subject.str.fullmatch(r"cpu (all|\d+)")]
    keys, machine = [*KEY, "host", "at_utc", "subject"], [*KEY, "host"]
    wide = pd.DataFrame(
        {
            name: rows[rows.metric.isin(metric)].drop_duplicates(keys).set_index(keys).value
            for name, metric in NAMES.items()
        }
    )
    wide["busy_percent"] = (100 - wide.idle_percent - wide.iowait_percent).clip(0, 100)
    wide = wide.reset_index()
    single = wide[wide.subject != "cpu all"]
    busiest = single.groupby([*machine, "at_utc"], dropna=False).busy_percent.max()
    groups = wide[wide.subject == "cpu all"].groupby(machine, dropna=False)
    means = groups[[*NAMES, "busy_percent"]].mean()
    means.insert(0, "n_samples", groups.size())
    return means.assign(
        max_busy_percent=groups.busy_percent.max(),
        max_steal_percent=groups.steal_percent.max(),
        busiest_cpu_percent=busiest.groupby(level=machine, dropna=False).mean(),
    ).reset_index()


def processor_effect(limits: Limits, use: pd.DataFrame) -> ProcessorEffect:
    """
    Test whether trials reach less of their limit if processors are busier.

    A fixed threshold would not do: at a mean of 75 % over a second, threads already wait. So the share reached is
    regressed on utilisation, among trials of one setting and link rate.

    Parameters
    ----------
    limits : Limits
        The limits of the trials.
    use : DataFrame
        The result of `processor_use` for the counted seconds (`TrialRates.marked`).

    Raises
    ------
    ParameterError
        No trial has both a limit and processor metrics.
    """
    busy = use.groupby(KEY, dropna=False).busy_percent.max().rename("busy_percent").reset_index()
    trials = limits.trials.drop(columns="busy_percent", errors="ignore").merge(busy, on=KEY)
    trials = trials[trials.busy_percent.notna()].reset_index(drop=True)
    if trials.empty:
        raise ParameterError(f"no trial of {len(limits.trials)} has samples of processors in its counted seconds")
    frame = pd.DataFrame({"busy": trials.busy_percent / STEP_PERCENT, "log": np.log(trials.reached)})
    groups = frame.groupby([trials.setting, trials.rate_bps], dropna=False)
    # Deviations from the mean of the setting: settings differ in both without the one causing the other.
    apart = frame - groups.transform("mean")
    total, freedom = float(apart.busy @ apart.busy), len(frame) - groups.ngroups - 1
    slope = float(apart.busy @ apart.log) / total if total > 0 else nan
    half, notes = nan, ()
    if freedom <= 0:
        notes = ("too few trials of one setting to relate what they reach to busy processors",)
    elif total > 0:
        rest = float(((apart.log - slope * apart.busy) ** 2).sum())
        half = stats.t.ppf((1 + limits.level) / 2, freedom) * sqrt(rest / freedom / total)
    else:
        notes = ("processors were equally busy in all trials of a setting, so the effect of busier ones is unknown",)
    estimate = ratio_estimate(
        slope,
        half,
        quantity="reached, busier processors over less busy ones",
        claim=f"At the same setting, a trial reached {{}} the share of its limit per {STEP_PERCENT:g} points of "
        "processor use more",
        n=len(trials),
        basis=count(len(trials), "trial"),
        method=METHOD.format(max(freedom, 0)),
        assumption=ASSUMPTION,
        level=limits.level,
        warnings=notes,
    )
    return ProcessorEffect(estimate, trials[[*KEY, "setting", "rate_bps", "limit", "reached", "busy_percent"]])
