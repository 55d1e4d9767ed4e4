"""
Read the trials of several systems at steps of rate or partitions: which of them count, and their latencies.

If the load generator fell behind its own schedule, or a backlog from the start of the trial was still draining, the
trial does not test the system under this load. It is left out of curves and comparisons, and the table shows why. A
trial in which the system fell behind counts.

The *pooled* quantile is the quantile of the records of all trials; tables of latencies show it. The quantile of a
*typical trial* is the geometric mean of the quantiles of single trials. Comparisons use the latter, because a pooled
p99.9 often depends on the worst trial only. In simulation the jackknife of a pooled p99.9 finds false differences in 5
to 16 of 100 comparisons, and Student's t on logarithms of trials' quantiles in 3 to 8.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import inf

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns, check_kind, check_table, refusal
from wanbench.errors import MissingDataError
from wanbench.formatting import count, number, quantity
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tails.distribution import Parts, Tail
from wanbench.methods.trials.counted_seconds import attempts_with_loads

from .latencies import of_open_loop
from .step_curves import RATE

PARTITIONS, WHAT = "partitions", "end to end"
ACKNOWLEDGED = "acknowledged_records_per_s"
STEPS = {RATE: "rate", PARTITIONS: "partitions"}
KEPT_UP = 0.98
"""
A system keeps up if it acknowledges at least this share of the requested rate, and consumer groups receive as many.
Below this share, latency grows by more than 20 ms in each second, so the tail depends only on the length of the trial.
"""
LOAD = (RATE, "topics", PARTITIONS, "record_bytes", "start_s", "warmup_s", "duration_s", ACKNOWLEDGED)
LOAD += ("received_records_per_s", "reread_records_per_s", "late_p99_ms", "fell_behind", "error")
NEEDED = {
    "tests": [*KEY, "outcome"],
    "trials": ["run_id", "test_id", "setting", "system", "block"],
    "open_loop_loads": [*KEY, *LOAD],
    "open_loop_histograms": [*KEY, "what", "window", "warm_up"],
}
BEHIND = "the generator fell behind its schedule"
DRAINING = "the backlog from its start was still draining, so its warm-up was too short"
"""
The reason why a trial does not count if its median latency falls in each quarter of its seconds, and to half or less
in all. In steady state latency only scatters, and it grows if the system falls behind; it falls steadily in neither.
"""
METHOD = (
    "percentile in the later half of a trial's seconds over that in the earlier half; Student's t on logarithms, "
    "trials as independent units"
)
ASSUMPTION = "Trials are independent; drift within a trial has the same direction in all of them"


@dataclass(frozen=True, eq=False)
class TailTrials:
    """
    Repeated trials of one system at one load.

    `tails` has the latency distribution of each trial after its warm-up, and `blocks` the block of each trial; by
    default each trial is a separate block.
    """

    name: str
    tails: tuple[Tail, ...]
    blocks: tuple[Hashable, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "tails", tuple(check_kind("tails", self.tails, Iterable)))
        object.__setattr__(self, "blocks", tuple(self.blocks) or tuple(range(len(self.tails))))
        if not self.tails or not all(isinstance(tail, Tail) and tail.n for tail in self.tails):
            raise refusal("tails", self.tails, "the Tail of each trial, one trial or more, each with records")
        if len(self.blocks) != len(self.tails):
            raise refusal("blocks", self.blocks, f"the block of each of the {len(self.tails)} trials")

    @cached_property
    def pooled(self) -> Tail:
        """The latency distribution of the records of all trials, with intervals whose units are trials."""
        return merged(self.tails, self.name)

    def by_trial(self, q: float) -> np.ndarray:
        """Return the quantile `q` of each trial, in ms."""
        return np.array([tail.quantile(q) for tail in self.tails])


def merged(tails: Sequence[Tail], name: str) -> Tail:
    """Return the latency distribution of the records of several trials; each trial is one run of the Tail."""
    values, place = np.unique(np.concatenate([tail.values_ms for tail in tails]), return_inverse=True)
    counts = np.bincount(place, weights=np.concatenate([tail.counts for tail in tails]), minlength=len(values))
    # a trial whose parts are not known is one part
    whole = (Parts(np.zeros(1, dtype=int), np.array([float(tail.n)]), partial(_below, tail)) for tail in tails)
    parts = [alone if tail.parts is None else tail.parts for tail, alone in zip(tails, whole, strict=True)]
    trial = np.repeat(np.arange(len(parts)), [len(each.sizes) for each in parts])
    together = Parts(trial, np.concatenate([each.sizes for each in parts]), partial(_below_in_all, parts))
    n_lost, n_cut = (sum(getattr(tail, name) for tail in tails) for name in ("n_lost", "n_cut"))
    cautions = tuple(dict.fromkeys(text for tail in tails for text in tail.cautions))
    resolution_ms = max(tail.resolution_ms for tail in tails)
    return Tail(name, values, counts, n_lost, together, resolution_ms, n_cut, cautions)


def _below(tail: Tail, x: float) -> np.ndarray:
    return np.array([tail.counts[tail.values_ms <= x].sum()])


def _below_in_all(parts: Sequence[Parts], x: float) -> np.ndarray:
    return np.concatenate([each.below(x) for each in parts])


@dataclass(frozen=True, repr=False)
class SystemTrials(RowsResult):
    """
    The trials of all systems at all steps.

    `rows` has one row per trial: system, block, rate_records_per_s (requested, of all producers together), partitions
    (of all topics), payload_bps, acknowledged_records_per_s, late_p99_ms (delay of the generator), kept_up (whether the
    system acknowledged and delivered at least `KEPT_UP` of the requested rate), counts, why (why it does not count),
    and tail (end-to-end latencies, if the trial counts).
    """

    systems: tuple[str, ...]

    TITLE = "Trials by system and step"

    @property
    def sentence(self) -> str:
        out = self.rows[~self.rows.counts]
        text = f"{int(self.rows.counts.sum())} of {count(len(self.rows), 'trial')} count."
        if len(out):
            reasons = out.why.value_counts()
            text += "".join(f" {n} did not count, because {why}." for why, n in reasons.items())
        parts = []
        for system, part in self.rows[self.rows.counts].groupby("system", sort=False):
            behind = (~part.kept_up.astype(bool)).groupby([part[PARTITIONS], part[RATE]]).agg(["sum", "size"])
            where = [
                f"in {late} of {count(tried, 'trial')} at {number(rate, 0)} records/s and {count(n, 'partition')}"
                for (n, rate), late, tried in behind[behind["sum"] > 0].itertuples()
            ]
            parts += [f"“{system}” fell behind {', '.join(where)}"] if where else []
        return f"{text} {'; '.join(parts)}{'.' if parts else ''}".strip()

    @property
    def cautions(self) -> tuple[str, ...]:
        out = self.rows[~self.rows.counts]
        named = ", ".join(f"“{row.setting}” in block {row.block}" for row in out.itertuples())
        return (f"left out of every curve and comparison: {named}",) if len(out) else ()

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        place = self.rows.system.map(self.systems.index)
        ordered = self.rows.assign(place=place).sort_values([RATE, PARTITIONS, "place"])
        for (rate, partitions, system), part in ordered.groupby([RATE, PARTITIONS, "system"], sort=False):
            good = part[part.counts]
            row = {"records/s": number(rate, 0), "partitions": number(partitions, 0), "system": system}
            row |= {"trials": f"{len(good)} of {len(part)}", "acknowledged/s": number(good[ACKNOWLEDGED].mean(), 0)}
            row |= {"kept up": f"{int(good.kept_up.sum())} of {len(good)}"}
            row |= {"generator's delay, p99": quantity(part.late_p99_ms.max(), "ms")}
            rows.append(row | {"left out because": "; ".join(part.why[~part.counts].unique())})
        return pd.DataFrame(rows)

    def steps(self, along: str, **at: float) -> list[float]:
        """Return the measured rates or numbers of partitions (`along`) in order, with the other fixed by `at`."""
        check_choice("step", along, STEPS)
        return sorted(self.matching(**at)[along].unique().tolist())

    def stepped(self, system: str, **at: float) -> pd.DataFrame:
        """Return a system's trials that count, with the rate or partitions in `at`, as `step_curve` needs them."""
        rows = self.matching(**at)
        check_choice("system", system, self.systems)
        return rows[rows.counts & (rows.system == system)]

    def at(self, system: str, **step: float) -> TailTrials:
        """
        Return the trials of a system at one step, without those that are invalid as a test of it (`counts` is false).

        `step` has values of rate_records_per_s, partitions, or both. Raises MissingDataError: no trial is left.
        """
        rows = self.stepped(system, **step)
        if rows.empty:
            where = ", ".join(f"{STEPS.get(name, name)} {value:g}" for name, value in step.items())
            raise MissingDataError(f"no trial of {system} counts at {where}.")
        return TailTrials(system, tuple(rows["tail"]), tuple(rows.block))

    def part(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the table `frame` that belong to trials with `counts` and `kept_up`."""
        kept = self.rows[self.rows.counts & self.rows.kept_up]
        return frame.merge(kept[KEY].astype(frame[KEY].dtypes), on=KEY)

    def highest_kept(self, below: float = inf, **at: float) -> float:
        """
        Return the highest rate under `below`, in records/s, at which all systems kept up in all trials.

        Raises MissingDataError: there is none.
        """
        rows = self.matching(**at)
        rows = rows[rows.counts & (rows[RATE] < below)]
        kept = rows.groupby(RATE).agg(kept=("kept_up", "all"), systems=("system", "nunique"))
        kept = kept[kept.kept & (kept.systems == len(self.systems))]
        if kept.empty:
            raise MissingDataError("there is no rate below the knees at which every system kept up.")
        return float(kept.index.max())

    def matching(self, **at: float) -> pd.DataFrame:
        """Return the rows with the rate_records_per_s, the partitions, or both, in `at`."""
        rows = self.rows
        for name, value in at.items():
            check_choice("step", name, STEPS)
            rows = rows[rows[name] == value]
        return rows


def trials(tables: Mapping[str, pd.DataFrame], systems: Sequence[str]) -> SystemTrials:
    """
    Read the trials of a run that was planned with `design.systems_by_steps`.

    `systems` names the systems, in the order in which tables and figures show them. `tables` must have those of NEEDED.
    Raises MissingDataError: no trial of these systems was measured. Raises ParameterError: a table or a column is
    missing.
    """
    for name, columns in NEEDED.items():
        check_columns(name, check_table(name, tables), columns)
    columns, loads = ("setting", "system", "block"), tables["open_loop_loads"][[*KEY, *LOAD]]
    rows = attempts_with_loads(tables, columns, loads)
    rows = rows[rows.system.isin(list(systems))].reset_index(drop=True)
    if rows.empty:
        raise MissingDataError(f"no trial of {', '.join(systems)} was measured.")
    histograms = tables["open_loop_histograms"]
    by_trial = dict(list(histograms[histograms.what == WHAT].groupby(KEY)))
    latencies = [by_trial.get(key) for key in rows[KEY].itertuples(index=False, name=None)]
    rows["why"] = [
        why or _unusable(late, own) for why, late, own in zip(rows.why, rows.fell_behind, latencies, strict=True)
    ]
    rows["counts"] = rows.why == ""
    done = rows[[ACKNOWLEDGED, "received_records_per_s"]].fillna(0).min(axis=1)
    rows["kept_up"] = done >= KEPT_UP * rows.rate_records_per_s.fillna(inf)
    rows["payload_bps"] = 8.0 * rows.rate_records_per_s * rows.record_bytes
    rows["partitions"] = rows.topics * rows.partitions
    attempts = zip(latencies, rows.setting, rows.counts, strict=True)
    rows["tail"] = [of_open_loop(own, name=setting) if counts else None for own, setting, counts in attempts]
    return SystemTrials(rows, tuple(systems))


def _unusable(fell_behind: object, latencies: pd.DataFrame | None) -> str:
    """Return why a trial does not count; "" if it counts."""
    if pd.isna(fell_behind):
        return "it left no load"
    if fell_behind:
        return BEHIND
    if latencies is None:
        return "it left no latencies"
    return DRAINING if _drains(latencies) else ""


def _drains(latencies: pd.DataFrame) -> bool:
    """Return whether the median latency falls in each quarter of the counted seconds, and to half or less in total."""
    counted = latencies[~latencies.warm_up.astype(bool)]
    quarters = np.array_split(np.sort(counted.window.unique()), 4)
    if not len(quarters[-1]):
        return False
    medians = [of_open_loop(counted[counted.window.isin(own)]).quantile(0.5) for own in quarters]
    return medians[-1] <= medians[0] / 2 and all(b < a for a, b in pairwise(medians))


def settled(trials: SystemTrials, tables: Mapping[str, pd.DataFrame]) -> Estimate:
    """
    Estimate the ratio of p99 in the later half of a trial, without its warm-up, to that in the earlier half.

    A trial of a few seconds is too short to test for drift, so the ratio is the mean over all trials that kept up. If
    its interval contains 1, there is no significant drift. Raises MissingDataError: no trial that kept up has two
    seconds after its warm-up.
    """
    histograms, ratios = trials.part(tables["open_loop_histograms"]), []
    for _, part in histograms[(histograms.what == WHAT) & ~histograms.warm_up].groupby(KEY):
        windows = np.sort(part.window.unique())
        if half := len(windows) // 2:
            halves = (part[part.window.isin(own)] for own in (windows[:half], windows[-half:]))
            early, late = (of_open_loop(own).quantile(0.99) for own in halves)
            ratios += [late / early] if np.isfinite([early, late]).all() and early > 0 else []
    if not ratios:
        raise MissingDataError("no trial that kept up has two counted seconds.")
    about = {"quantity": "p99, later half of a trial over the earlier", "method": METHOD, "assumption": ASSUMPTION}
    claim = "In the later half of the counted seconds, p99 is {} that of the earlier half"
    return geometric_mean(ratios, 0.95, claim=claim, **about)


def rereads(trials: SystemTrials) -> Estimate:
    """
    Estimate the ratio of two systems' rates at which a group reads all records again after a load, within blocks.

    MissingDataError if no block has both systems' rates at a step.
    """
    rows, (one, other) = trials.rows[trials.rows.counts], trials.systems
    rates = rows.pivot_table(index=["block", *STEPS], columns="system", values="reread_records_per_s").dropna()
    if len(rates.columns) < 2 or rates.empty:
        raise MissingDataError("in no block did a group of both systems read all records again.")
    about = {"quantity": f"rate of reading again, {other} over {one}", "assumption": "Blocks are independent"}
    claim = f"After the load, a group reads all records again at {{}} the rate with “{other}” as with “{one}”"
    method = "ratio within a block and step; Student's t on means of logarithms over blocks"
    units = rates.index.get_level_values("block")
    ratios = rates[other] / rates[one]
    return geometric_mean(ratios, 0.95, units=units, unit_name="block", claim=claim, method=method, **about)
