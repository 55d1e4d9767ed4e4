"""The highest rate at which a quantile of latency meets an objective. Read by `wanbench.read.ingest.kafka_open_loop`."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import ClassVar

from wanbench import open_loop
from wanbench.checks import check_choice, check_fields, check_number, refusal
from wanbench.errors import LabError, ParameterError
from wanbench.measure.experiments.base import ExperimentError, cluster_of
from wanbench.measure.experiments.kafka_open_loop import KafkaOpenLoop
from wanbench.measure.experiments.kafka_open_loop_session import OpenLoopSession
from wanbench.measure.labs.base import Host
from wanbench.measure.plan import Trial
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .systems import System, systems_by_steps

SETTLE_S = 2.0
"""Pause between two steps, for queues and links to drain, and for the topic's deletion."""
END_TO_END, PUBLISH = "end to end", "publish"
ALL_STEPS, FELL_BEHIND = "all steps were made", "the generator fell behind"


@dataclass(frozen=True)
class KafkaRateSearch:
    """
    Search, by bisection of the log rate, for the highest rate that meets a latency objective.

    Each step runs the load at one rate, with new topics. It meets the objective if the quantile of the latencies after
    the warm-up is at most `objective_ms`, with none of these records lost and the backlog not growing
    (`wanbench.open_loop.backlog_grew`). If the generator falls behind, the step says nothing about the system, and the
    next one repeats its rate; the second such step in a row ends the search, which reports its progress.

    The result is a bracket: the highest rate of a step that met the objective, and the lowest of one that
    did not. Their ratio is `factor`, (highest / lowest) ** (1 / 2 ** steps); the ends of the search range
    are not measured, so a bracket that reaches one is open there. Chance may decide a step near the limit,
    and the search trusts it: so replicates are repeated searches, not repeated steps.

    Parameters
    ----------
    load : KafkaOpenLoop
        Its own rate is not used. Choose `duration_s` so that the quantile depends on many seconds, not only on many
        records: records of the same second are alike.
    objective_ms : float
    lowest_records_per_s, highest_records_per_s : float
        The range to search.
    quantile : float
    steps : int
    what : "end to end" or "publish"
        Latency until receipt, of all groups together, or until acknowledgement.

    Examples
    --------
    >>> search = KafkaRateSearch(KafkaOpenLoop(1), 100.0, 500.0, 8_000.0)
    >>> search.first_rate, round(search.factor, 3)
    (2000.0, 1.022)
    """

    load: KafkaOpenLoop
    objective_ms: float
    lowest_records_per_s: float
    highest_records_per_s: float
    quantile: float = 0.99
    steps: int = 7
    what: str = END_TO_END

    name: ClassVar[str] = "kafka_rate_search"

    def __post_init__(self):
        if isinstance(self.load, Mapping):  # of a manifest
            object.__setattr__(self, "load", KafkaOpenLoop(**self.load))
        if not isinstance(self.load, KafkaOpenLoop):
            raise refusal("KafkaRateSearch load", self.load, "a KafkaOpenLoop")
        check_fields(self, ("steps", 1, 30), whole=True)
        check_fields(
            self,
            ("objective_ms", 0.001, 3.6e6),
            ("lowest_records_per_s", 0.1, 1e6),
            ("highest_records_per_s", 0.1, 1e6),
            ("quantile", 0, 1),
        )
        check_number("KafkaRateSearch quantile", self.quantile, 0, 1, above=True)
        check_choice("KafkaRateSearch what", self.what, (END_TO_END, PUBLISH))
        if not self.quantile < 1:
            raise refusal(
                "KafkaRateSearch quantile", self.quantile, "below 1: no run contains the slowest possible record"
            )
        if not self.lowest_records_per_s < self.highest_records_per_s:
            raise ParameterError(
                f"KafkaRateSearch lowest_records_per_s is {self.lowest_records_per_s:g}; allowed: less than "
                f"{self.highest_records_per_s:g}, highest_records_per_s."
            )
        self.at(self.highest_records_per_s)  # refused here if that would send too much

    def __str__(self) -> str:
        return (
            f"search: highest of {self.lowest_records_per_s:g} to {self.highest_records_per_s:g} records/s with "
            f"p{100 * self.quantile:g} {self.what} within {self.objective_ms:g} ms, {self.steps} steps of {self.load}"
        )

    # A trial asks these of its load

    topics = property(lambda self: self.load.topics)
    partitions = property(lambda self: self.load.partitions)
    replication = property(lambda self: self.load.replication)
    topic_settings = property(lambda self: self.load.topic_settings)
    producer_settings = property(lambda self: self.load.producer_settings)
    consumer_settings = property(lambda self: self.load.consumer_settings)

    @property
    def first_rate(self) -> float:
        """The rate of the first step."""
        return _middle(self.lowest_records_per_s, self.highest_records_per_s)

    @property
    def factor(self) -> float:
        """Ratio of the bracket's ends after all steps."""
        return (self.highest_records_per_s / self.lowest_records_per_s) ** (0.5**self.steps)

    def at(self, rate: float) -> KafkaOpenLoop:
        """The load at a given rate."""
        return replace(self.load, rate_records_per_s=float(rate))

    def run(
        self, source: Host, target: Host, folder: Path, stem: str, *, when_sending: Callable[[], None] | None = None
    ) -> list[RawFile]:
        """
        Search with producers on `source` and consumers on `target`; `when_sending` is called once, when the first step
        starts.

        Leaves kafka_rate_search/<stem>.search.json with the steps and the bracket, and what each step's load leaves,
        as <stem>.step-<number>.

        Raises
        ------
        ExperimentError
            If a step's load fails; what was measured so far is kept.
        """
        return self.run_on([source], [target], folder, stem, when_sending=when_sending)

    def run_on(
        self,
        producers: Sequence[Host],
        consumers: Sequence[Host],
        folder: Path,
        stem: str,
        *,
        when_sending: Callable[[], None] | None = None,
    ) -> list[RawFile]:
        """The same as `run`, with producers and groups spread over several hosts."""
        if not producers or not consumers:
            raise ExperimentError("a search needs hosts for its producers and its consumers")
        cluster = cluster_of(*producers, *consumers)
        files: list[RawFile] = []
        steps: list[dict] = []
        low, high = None, None
        ended, error, began_utc = ALL_STEPS, None, now_utc()
        try:
            for number in range(1, self.steps + 1):
                if number > 1:
                    time.sleep(SETTLE_S)
                rate = _middle(low or self.lowest_records_per_s, high or self.highest_records_per_s)
                load, name = self.at(rate), f"{stem}.step-{number}"
                session = OpenLoopSession(
                    load, cluster, producers, consumers, folder, name,
                    when_sending if number == 1 else None, number,
                )  # fmt: skip
                try:
                    session.run()
                finally:
                    files += session.files
                verdict = judged(self, load, *session.printed())
                low = rate if verdict["met"] else low
                high = rate if verdict["met"] is False else high
                steps.append(
                    {"step": number, "rate_records_per_s": rate, **verdict, "met_until": low, "failed_from": high}
                )
                if len(steps) > 1 and steps[-1]["met"] is steps[-2]["met"] is None:
                    ended = FELL_BEHIND
                    break
        except LabError as failed:
            error = str(failed)
        except BaseException as failed:
            error = f"{type(failed).__name__}: {failed}"
            raise
        finally:
            about = {"format": 1, "settings": asdict(self), "steps": steps, "ended": error or ended, "error": error}
            content = json.dumps(about, indent=1).encode() + b"\n"
            times = {"started_at_utc": began_utc, "ended_at_utc": now_utc()}
            files.append(write_raw(folder, self.name, f"{stem}.search.json", content, **times))
        if error is not None:
            raise ExperimentError(error, files)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration of all steps."""
        return self.steps * (self.load.expected_s(rtt_ms, rate_bps) + SETTLE_S)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Payload that the producers send, assuming steps around the middle of the range."""
        return self.steps * self.at(self.first_rate).expected_bytes(rtt_ms, rate_bps)


def _middle(low: float, high: float) -> float:
    """The geometric mean, rounded to a tenth of a record per second where possible."""
    middle = math.sqrt(low * high)
    return round(middle, 1) if low < round(middle, 1) < high else middle


def judged(search, load, producers: list[list[dict]], groups: list[list[dict]]) -> dict:
    """
    The verdict on one step.

    Parameters
    ----------
    search : KafkaRateSearch
    load : KafkaOpenLoop
        The load at the rate of the step.
    producers, groups : list of list of dict
        Per-second output of each producing process and each group, from `OpenLoopSession.printed`.

    Returns
    -------
    dict
        value_ms (null: the record of this rank was lost), n and n_lost of the latency that counts, backlog_grew,
        fell_behind, and met: null if the generator fell behind.
    """
    counted = range(ceil(load.warmup_s - 1e-9), ceil(load.length_s - 1e-9))
    late, published = (_counts(producers, counted, name) for name in ("late", "publish"))
    n_due = _total(producers, counted, "n_due")
    if search.what == "publish":
        latency, n = published, n_due
    else:
        latency, n = _counts(groups, counted, "latency"), n_due * load.groups
    n_lost = max(n - sum(latency.values()), 0)
    value_us = open_loop.quantile(latency, search.quantile, n_lost)
    behind = open_loop.fell_behind(late, published)
    grew = open_loop.backlog_grew(_backlog(producers, counted), load.rate_records_per_s)
    within = value_us is not None and value_us <= 1_000 * search.objective_ms
    return {
        "value_ms": None if value_us is None else value_us / 1_000,
        "n": n,
        "n_lost": n_lost,
        "backlog_grew": grew,
        "fell_behind": behind,
        "met": None if behind else within and not n_lost and not grew,
    }


def _counts(programs: list[list[dict]], counted: range, name: str) -> Counter:
    """Records by latency value, over all programs and counted seconds."""
    counts: Counter = Counter()
    for lines in programs:
        for line in lines:
            if line["second"] in counted:
                values = line[name]
                counts.update(dict(zip(values[::2], values[1::2], strict=True)))
    return counts


def _total(programs: list[list[dict]], counted: range, name: str) -> int:
    return sum(line[name] for lines in programs for line in lines if line["second"] in counted)


def _backlog(producers: list[list[dict]], counted: range) -> list[int]:
    """Total backlog of all processes at the end of each counted second."""
    by_second: Counter = Counter()
    for lines in producers:
        for line in lines:
            by_second[line["second"]] += line["backlog"] or 0
    return [by_second[second] for second in counted]


def rate_searches(
    systems: Sequence[System],
    load: KafkaOpenLoop,
    objective_ms: float,
    rates: tuple[float, float],
    *,
    steps: int = 7,
    replicates: int = 1,
    seed: int = 0,
    **options,
) -> list[Trial]:
    """
    Searches for every system, in blocks as in `systems_by_steps`.

    Parameters
    ----------
    systems, load
        As in `systems_by_steps`.
    objective_ms, rates, steps
        As in `KafkaRateSearch`; `rates` holds the lowest and the highest rate.
    replicates : int
        Number of searches for each system; 0: none.
    **options
        `alongside`, `link`, `client_regions`, `gateway_bps` of `systems_by_steps`.

    Returns
    -------
    list of Trial
        `setting` is "<system>, search".

    Examples
    --------
    >>> pair = [{"name": "a"}, {"name": "b", "load": {"linger_ms": 0}}]
    >>> found = rate_searches(pair, KafkaOpenLoop(1000), 100.0, (500, 4000), steps=3)
    >>> sorted(trial.setting for trial in found)
    ['a, search', 'b, search']
    """
    if replicates == 0:
        return []
    one_step = {"rate_records_per_s": [load.rate_records_per_s]}
    planned = systems_by_steps(systems, load, one_step, replicates, seed, **options)
    lowest, highest = rates
    found = []
    for trial in planned:
        (one,) = trial.experiments
        search = KafkaRateSearch(one.load, objective_ms, lowest, highest, steps=steps)
        found.append(Trial(f"{one.system}, search", (replace(one, load=search),), trial.block))
    return found
