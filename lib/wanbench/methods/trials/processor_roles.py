"""Who used the processors during trials: brokers, clients, emulated links, kernel, harness, other work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError
from wanbench.formatting import count, number
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import RowsResult, text_table
from wanbench.read.ingest.processors import ALL, BUSY, INTERRUPTS

CLIENTS = (
    "open_loop_producer", "open_loop_consumer", "fault_producer", "fault_consumer", "iperf3",
    "org.apache.kafka.tools.ProducerPerformance", "org.apache.kafka.tools.ConsumerPerformance",
    "io.openmessaging.benchmark.Benchmark", "io.openmessaging.benchmark.worker.BenchmarkWorker",
)  # fmt: skip
ROLE_OF = {"kafka.Kafka": "brokers", "lab_supervisor": "links", "keeper": "links"} | dict.fromkeys(CLIENTS, "clients")
"""
Programs by name ("keeper" held the links when the first samples were recorded); every other program of the
measurement is the harness: samplers, watchers, the driver.
"""
ROLES = ["brokers", "clients", "links", "kernel", "harness", "other"]
OURS = ["clients", "links", "harness"]
"""What a real deployment has elsewhere: clients on other machines, and networks instead of emulated links."""
MOST_OURS, MOST_OTHER = 15.0, 10.0
"""
Percentages of the processors above which a caution is due. At 15 % of two processors brokers lose a third of one, more
than trials of one setting differ by; other work is nobody's plan, so less of it is enough.
"""


@dataclass(frozen=True, repr=False)
class ProcessorRoles(RowsResult):
    """
    Who used the processors.

    Attributes
    ----------
    rows : DataFrame
        Per setting, the busiest first: `setting`, `trials`, and in percent of all processors, means over trials, `busy`
        and each of `ROLES`. "links" is the emulation of links, "kernel" interrupts that no process is charged for,
        "harness" whatever else measures, "other" all other work, stolen time included.
    """

    TITLE = "Who used the processors, in % of all processors"

    @property
    def sentence(self) -> str:
        """The busiest setting by role, and the least busy one."""
        top, least = self.rows.iloc[0], self.rows.iloc[-1]
        by_role = ", ".join(f"{role} {number(top[role], 0)} %" for role in ROLES)
        busy = f"busy for {number(top.busy, 0)} % of the time ({by_role})"
        if len(self.rows) == 1:
            return f"The processors were {busy}."
        return (
            f"With “{top.setting}” the processors were {busy}; that is the most of {len(self.rows)} settings. With "
            f"“{least.setting}” they were busy for {number(least.busy, 0)} %, the least."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Settings in which the harness or other work took too much."""
        ours = self.rows[OURS].sum(axis=1)
        texts = []
        if (ours > MOST_OURS).any():
            at = ours.idxmax()
            parts = ", ".join(f"{role} {number(self.rows[role][at], 0)} %" for role in OURS)
            texts.append(
                f"the measurement itself takes over {MOST_OURS:g} % of the processors in {(ours > MOST_OURS).sum()} "
                f"of {count(len(ours), 'setting')}, most with {self.rows.setting[at]} ({parts}); brokers elsewhere "
                "would have that time for themselves"
            )
        if (self.rows.other > MOST_OTHER).any():
            worst = self.rows.loc[self.rows.other.idxmax()]
            texts.append(
                f"other work on the machine takes over {MOST_OTHER:g} % of its processors, most with {worst.setting} "
                f"({number(worst.other, 0)} %)"
            )
        return tuple(texts)

    def formatted_table(self) -> pd.DataFrame:
        """The rows as text, in whole per cent."""
        return text_table(self.rows.assign(**{name: self.rows[name].round() for name in ["busy", *ROLES]}))


def by_trial(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Percentages of all processors by role, per trial and machine, over the seconds that count.

    These are the counted seconds of a load, or the whole of a fault episode; without them, all samples.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, host, busy, and a column for each of `ROLES`.
    """
    metrics = check_kind("tables", tables, Mapping).get("metrics")
    rows = metrics if metrics is None else metrics[metrics.source == "processors"]
    if rows is None or rows.empty:
        raise MissingDataError("no samples of who used the processors: the run was measured by an older version.")
    windows = _windows(tables)
    at_s = (rows.at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    found = []
    for key, part in rows.assign(at_s=at_s).groupby([*KEY, "host"], dropna=False):
        spanned = part.at_s[part.subject == ALL]
        ends = windows.get(key[:3], (spanned.min(), spanned.max()))
        used = {
            name: float(np.diff(np.interp(ends, own.at_s, own.value, left=0.0))[0])
            for name, own in part.sort_values("at_s").groupby("subject")
        }
        if used.get(ALL, 0) > 0:
            found.append({**dict(zip([*KEY, "host"], key, strict=True)), **_by_role(used)})
    return pd.DataFrame(found, columns=[*KEY, "host", "busy", *ROLES])


def processor_roles(tables: Mapping[str, pd.DataFrame]) -> ProcessorRoles:
    """
    Who used the processors, by setting of the tests that are done; of several machines, the busiest one of each test.

    MissingDataError if there are no such samples.
    """
    machines = by_trial(tables).sort_values("busy", ascending=False).drop_duplicates(KEY)
    tests = tables["tests"]
    if "trials" in tables:
        trials = tables["trials"]
        warm_ups = pd.MultiIndex.from_frame(trials.loc[trials.block.isna(), ["run_id", "test_id"]])
        tests = tests[~pd.MultiIndex.from_frame(tests[["run_id", "test_id"]]).isin(warm_ups)]
    joined = tests.loc[tests.outcome == "done", [*KEY, "setting"]].merge(machines, on=KEY)
    if joined.empty:
        raise MissingDataError("no test that counts has samples of who used the processors.")
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
    # The kernel may charge interrupts to the process that they interrupt, so only what is left over is its own.
    # The kernel times programs exactly, but samples the busy time of a processor at its ticks, which miss bursts.
    busy = max(busy, sum(roles.values()))
    left = busy - sum(roles.values())
    roles["kernel"] = min(used.get(INTERRUPTS, 0.0), left)
    roles["other"] = left - roles["kernel"]
    return {"busy": 100 * busy / total} | {role: 100 * seconds / total for role, seconds in roles.items()}


def _windows(tables: Mapping[str, pd.DataFrame]) -> dict[tuple, tuple[float, float]]:
    """The seconds that count of each test: from, until (Unix s)."""
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
