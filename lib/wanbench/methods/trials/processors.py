"""Compute the utilisation of processors in trials, by program, and whether high utilisation reduced throughput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np
import pandas as pd

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number
from wanbench.methods.lab import utilisation
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import LEVEL, Estimate, Result, RowsResult, text_table
from wanbench.methods.result.estimate import t_quantile
from wanbench.methods.result.means import ratio_estimate
from wanbench.methods.trials.limits import Limits
from wanbench.methods.trials.rates import TrialRates
from wanbench.read.ingest.processors import ALL, BUSY, INTERRUPTS

# Processors with this mean utilisation in the counted seconds are fully used in some of them.
FULL_PERCENT = 90.0
# The effect is stated for this difference of utilisation in percentage points, which is typical between trials.
STEP_PERCENT = 10.0
METHOD = (
    "least squares of the logarithm of the measured over the allowed rate on the share of time for which processors "
    "were busy, with a constant for each setting; t with {} degrees of freedom, trials as independent units; sysstat"
)
ASSUMPTION = (
    "Nothing else slows trials of one setting; a trial that carries more keeps processors busier, which "
    "masks the effect"
)


@dataclass(frozen=True, repr=False)
class ProcessorEffect(Result):
    """
    How processor utilisation affects the share of its limit that a trial reaches.

    slope: The factor by which this share changes for 10 percentage points more of processor utilisation, at the same
        setting; NaN if no setting has two trials.
    trials: Per trial: run_id, test_id, attempt, setting, rate_bps, limit, `reached` (measured rate over limit),
        `busy_percent` (of the busiest machine, mean over the counted seconds).
    """

    slope: Estimate
    trials: pd.DataFrame

    @property
    def sentence(self) -> str:
        means = self._means()
        listed = "; ".join(
            f"“{name}” reached {number(reached, 2)} of its limit with the processors {number(busy, 0)} % busy"
            for name, busy, reached in means.itertuples()
        )
        return f"{self.slope.sentence} On average {listed}."

    def _means(self) -> pd.DataFrame:
        """Return mean busy_percent and reached per setting, at the highest rate of the link."""
        rates = self.trials.rate_bps.astype("float64")
        rows = self.trials[rates.isna() | (rates == rates.max())]
        return rows.groupby("setting", sort=False)[["busy_percent", "reached"]].mean()

    @property
    def full(self) -> tuple[str, ...]:
        """The settings in which processors were full, at the highest rate of the link."""
        busy = self._means().busy_percent
        return tuple(busy.index[busy >= FULL_PERCENT])

    @property
    def cautions(self) -> tuple[str, ...]:
        means = self._means()
        notes = tuple(
            f"processors were full ({number(means.busy_percent[name], 0)} % busy) with “{name}”, which reached "
            f"{number(means.reached[name], 2)} of its limit: on a larger machine it may reach more"
            for name in self.full
        )
        return (*notes, *super().cautions)

    def bounding(self, ratio: Estimate | None, of: str, over: str) -> Estimate | None:
        """
        Return a ratio of rates between two settings, as a bound if processors were full in one of them.

        On a larger machine, a setting with full processors may reach a higher rate. So the interval has no upper end if
        processors were full in setting `of`, and no lower end if they were full in setting `over`.

        ratio: The rate of setting `of` over that of setting `over`; None is returned as None.
        """
        if ratio is None or not {of, over} & {*self.full}:
            return ratio
        ends = (-inf if over in self.full else ratio.low, inf if of in self.full else ratio.high)
        warnings = (*self.cautions[: len(self.full)], *ratio.warnings)
        return replace(ratio, low=ends[0], high=ends[1], warnings=warnings)


def processor_use(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    Return mean busy_percent and iowait_percent per test and host, over all processors and samples of sysstat.

    Processors are busy when neither idle nor in iowait, so steal time counts as busy.

    metrics: The table of that name.
    """
    rows = metrics[(metrics.source == "sysstat") & (metrics.subject == "cpu all")]
    machine = [*KEY, "host"]
    idle, waiting = (
        rows[rows.metric == name].drop_duplicates([*machine, "at_utc"]).set_index([*machine, "at_utc"]).value
        for name in ("idle", "iowait")
    )
    use = pd.DataFrame({"busy_percent": (100 - idle - waiting).clip(0, 100), "iowait_percent": waiting})
    return use.groupby(level=machine, dropna=False).mean().reset_index()


def processor_effect(limits: Limits, use: pd.DataFrame) -> ProcessorEffect:
    """
    Test whether trials reach a smaller share of their limit if processors are busier.

    The share is regressed on utilisation, among trials of the same setting and link rate. A fixed threshold of
    utilisation would not suffice: threads already wait at a mean of 75 % over a second.

    limits: The limits of the trials.
    use: The result of `processor_use` for the counted seconds (`TrialRates.marked`).

    Raises ParameterError: no trial has both a limit and processor metrics.
    """
    busy = use.groupby(KEY, dropna=False).busy_percent.max().rename("busy_percent").reset_index()
    trials = limits.trials.drop(columns="busy_percent", errors="ignore").merge(busy, on=KEY)
    trials = trials[trials.busy_percent.notna()].reset_index(drop=True)
    if trials.empty:
        raise ParameterError(f"no trial of {len(limits.trials)} has samples of processors in its counted seconds")
    frame = pd.DataFrame({"busy": trials.busy_percent / STEP_PERCENT, "log": np.log(trials.reached)})
    groups = frame.groupby([trials.setting, trials.rate_bps], dropna=False)
    # Use deviations from the setting's mean, as settings differ in utilisation and in the share without a causal
    # relation.
    apart = frame - groups.transform("mean")
    total, freedom = float(apart.busy @ apart.busy), len(frame) - groups.ngroups - 1
    slope = float(apart.busy @ apart.log) / total if total > 0 else nan
    half, notes = nan, ()
    if freedom <= 0:
        notes = ("too few trials of one setting to relate what they reach to busy processors",)
    elif total > 0:
        rest = float(((apart.log - slope * apart.busy) ** 2).sum())
        half = t_quantile(LEVEL, freedom) * sqrt(rest / freedom / total)
    else:
        notes = (
            "processors were equally busy in all trials of a setting, so the effect of busier processors is unknown",
        )
    claim = f"At the same setting, a trial with {STEP_PERCENT:g} percentage points more processor use"
    claim = f"{claim} reached a share of its limit that is {{}} as large"
    about = {"n": len(trials), "basis": count(len(trials), "trial"), "level": LEVEL, "warnings": notes}
    about |= {"quantity": "reached, busier processors over less busy ones", "claim": claim, "assumption": ASSUMPTION}
    estimate = ratio_estimate(slope, half, method=METHOD.format(max(freedom, 0)), **about)
    return ProcessorEffect(estimate, trials[[*KEY, "setting", "rate_bps", "limit", "reached", "busy_percent"]])


def mean_use(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Return, for each trial, three means over the counted seconds: busy_percent and iowait_percent, each of the machine
    where it is largest, and fullest_link, the utilisation of the fullest link. Values that were not measured are NaN.

    rates: The trials.
    tables: Tables metrics and link_samples, if any.
    """
    result = rates.rates[KEY].assign(busy_percent=nan, iowait_percent=nan, fullest_link=nan).set_index(KEY)
    if "metrics" in tables and len(tables["metrics"]):
        metrics = rates.marked(tables["metrics"][tables["metrics"].source == "sysstat"])
        use = processor_use(metrics[metrics.counts]).groupby(KEY)
        result.update(use[["busy_percent", "iowait_percent"]].max())
    if "link_samples" in tables and len(tables["link_samples"]):
        windows = rates.marked(utilisation.windows(tables["link_samples"]))
        each = windows[windows.counts].groupby([*KEY, "link_from", "link_to"]).utilisation.mean()
        result.update(each.groupby(level=KEY).max().rename("fullest_link").to_frame())
    return result.reset_index()


CLIENTS = (
    "open_loop_producer", "open_loop_consumer", "fault_producer", "fault_consumer", "iperf3",
    "org.apache.kafka.tools.ProducerPerformance", "org.apache.kafka.tools.ConsumerPerformance",
    "io.openmessaging.benchmark.Benchmark", "io.openmessaging.benchmark.worker.BenchmarkWorker",
)  # fmt: skip
# The role of each program by name; "keeper" is the former name of "lab_supervisor". All other programs of the
# measurement belong to the harness: samplers, watchers, the driver.
ROLE_OF = {"kafka.Kafka": "brokers", "tansu": "brokers", "lab_supervisor": "links", "keeper": "links"}
ROLE_OF |= dict.fromkeys(CLIENTS, "clients")
ROLES = ["brokers", "clients", "links", "kernel", "harness", "other"]
# Roles that a real deployment does not have on the brokers' machine.
MEASUREMENT = ["clients", "links", "harness"]
# A caution is given above these percentages of all processors. If measurement takes 15 % of two processors, brokers
# lose a third of one processor, more than the difference between trials of one setting. Other work is not planned, so
# its limit is lower.
MAX_MEASUREMENT, MAX_OTHER = 15.0, 10.0


@dataclass(frozen=True, repr=False)
class ProcessorRoles(RowsResult):
    """
    How much of the processors each role used: brokers, clients, links, kernel, harness, other.

    rows: Per setting, the busiest first: `setting`, `trials`, and `busy` and each of `ROLES` in per cent of all
        processors, as means over trials. "links": the emulation of links; "kernel": interrupts that are not charged to
        a process; "harness": other programs of the measurement; "other": all other work, and steal time.
    """

    TITLE = "Processor use by role, in % of all processors"

    @property
    def sentence(self) -> str:
        top, lowest = self.rows.iloc[0], self.rows.iloc[-1]
        by_role = ", ".join(f"{role} {number(top[role], 0)} %" for role in ROLES)
        busy = f"busy for {number(top.busy, 0)} % of the time ({by_role})"
        if len(self.rows) == 1:
            return f"The processors were {busy}."
        return (
            f"With “{top.setting}” the processors were {busy}; this is the highest of {len(self.rows)} settings. The "
            f"lowest is {number(lowest.busy, 0)} %, with “{lowest.setting}”."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        share = self.rows[MEASUREMENT].sum(axis=1)
        texts = []
        if (share > MAX_MEASUREMENT).any():
            at = share.idxmax()
            parts = ", ".join(f"{role} {number(self.rows[role][at], 0)} %" for role in MEASUREMENT)
            texts.append(
                f"the measurement itself takes more than {MAX_MEASUREMENT:g} % of the processors in "
                f"{(share > MAX_MEASUREMENT).sum()} of {count(len(share), 'setting')}, most with "
                f"“{self.rows.setting[at]}” ({parts}). On separate machines, brokers could use this time"
            )
        if (self.rows.other > MAX_OTHER).any():
            worst = self.rows.loc[self.rows.other.idxmax()]
            texts.append(
                f"other work on the machine takes over {MAX_OTHER:g} % of its processors, most with “{worst.setting}” "
                f"({number(worst.other, 0)} %)"
            )
        return tuple(texts)

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.rows.assign(**{name: self.rows[name].round() for name in ["busy", *ROLES]}))


def by_trial(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Compute how much of all processors each role (`ROLES`) used, per trial and machine, in per cent.

    The counted seconds of a load, or the whole of a fault episode, are used; without them, all samples.

    Returns DataFrame: run_id, test_id, attempt, host, busy, and a column for each of `ROLES`.
    """
    metrics = check_kind("tables", tables, Mapping).get("metrics")
    rows = metrics if metrics is None else metrics[metrics.source == "processors"]
    if rows is None or rows.empty:
        raise MissingDataError("no samples of processors by program: the run was measured by an older version.")
    windows = _windows(tables)
    at_s = (rows.at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    result = []
    for key, part in rows.assign(at_s=at_s).groupby([*KEY, "host"], dropna=False):
        spanned = part.at_s[part.subject == ALL]
        ends = windows.get(key[:3], (spanned.min(), spanned.max()))
        used = {
            name: float(np.diff(np.interp(ends, own.at_s, own.value, left=0.0))[0])
            for name, own in part.sort_values("at_s").groupby("subject")
        }
        if used.get(ALL, 0) > 0:
            result.append({**dict(zip([*KEY, "host"], key, strict=True)), **_by_role(used)})
    return pd.DataFrame(result, columns=[*KEY, "host", "busy", *ROLES])


def processor_roles(tables: Mapping[str, pd.DataFrame]) -> ProcessorRoles:
    """
    Compute how much of the processors each role (`ROLES`) used, per setting, over the completed tests.

    Of several machines, the busiest one of each test counts. Warm-up trials are left out.

    Raises MissingDataError: no test has samples of processor use by program.
    """
    machines = by_trial(tables).sort_values("busy", ascending=False).drop_duplicates(KEY)
    tests = tables["tests"]
    if "trials" in tables:
        trials = tables["trials"]
        warm_ups = pd.MultiIndex.from_frame(trials.loc[trials.block.isna(), ["run_id", "test_id"]])
        tests = tests[~pd.MultiIndex.from_frame(tests[["run_id", "test_id"]]).isin(warm_ups)]
    joined = tests.loc[tests.outcome == "done", [*KEY, "setting"]].merge(machines, on=KEY)
    if joined.empty:
        raise MissingDataError("no test that counts has samples of processors by program.")
    groups = joined.groupby("setting", sort=False)
    rows = groups[["busy", *ROLES]].mean()
    rows.insert(0, "trials", groups.size())
    return ProcessorRoles(rows.reset_index().sort_values("busy", ascending=False, ignore_index=True))


def _by_role(used: dict[str, float]) -> dict[str, float]:
    total, busy = used[ALL], used[BUSY]
    roles = dict.fromkeys(ROLES, 0.0)
    for name, seconds in used.items():
        if name not in (ALL, BUSY, INTERRUPTS):
            roles[ROLE_OF.get(name, "harness")] += seconds
    # The kernel may charge interrupts to the interrupted process, so only busy time that is left counts as interrupts.
    # The kernel measures the time of programs exactly, but samples the busy time of a processor at ticks, which miss
    # bursts; so busy time is at least the sum of the programs.
    busy = max(busy, sum(roles.values()))
    left = busy - sum(roles.values())
    roles["kernel"] = min(used.get(INTERRUPTS, 0.0), left)
    roles["other"] = left - roles["kernel"]
    return {"busy": 100 * busy / total} | {role: 100 * seconds / total for role, seconds in roles.items()}


def _windows(tables: Mapping[str, pd.DataFrame]) -> dict[tuple[object, ...], tuple[float, float]]:
    """Return the start and end of each test's counted seconds (Unix s)."""
    spans = []
    if len(loads := tables.get("open_loop_loads", ())):
        first = loads.start_s + loads.warmup_s
        spans.append(loads[KEY].assign(first=first, last=first + loads.duration_s))
    if len(loads := tables.get("loads", ())):
        spans.append(loads[KEY].assign(first=loads.counts_from_s, last=loads.counts_until_s))
    if not spans:
        return {}
    both = pd.concat(spans).dropna().groupby(KEY).agg({"first": "min", "last": "max"})
    return {key: (row["first"], row["last"]) for key, row in both.iterrows()}
