"""
Search for the highest rate that meets a latency objective.

`wanbench.read.ingest.kafka_open_loop` reads the files that a search writes.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from itertools import chain
from math import ceil
from typing import ClassVar

from wanbench import open_loop
from wanbench.checks import check_number, refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments.base import ClientLoad, bounded, check_declared, one_of
from wanbench.measure.experiments.kafka_open_loop import KafkaOpenLoop
from wanbench.measure.experiments.kafka_open_loop_session import OpenLoopSession
from wanbench.measure.experiments.session import ClientSession
from wanbench.measure.plan import Trial

from .systems import System, systems_by_steps

SETTLE_S = 2.0  # Pause between two steps, for queues and links to drain, and for the topic's deletion.
END_TO_END, PUBLISH = "end to end", "publish"
ALL_STEPS, FELL_BEHIND = "all steps were made", "the generator fell behind"


@dataclass(frozen=True)
class KafkaRateSearch(ClientLoad):
    """
    Search, by bisection of the log rate, for the highest rate that meets a latency objective.

    Each step runs the load at one rate, with new topics. It meets the objective if the quantile of the latencies after
    the warm-up is at most `objective_ms`, none of these records is lost, and the backlog does not grow
    (`wanbench.open_loop.backlog_grew`). If the generator falls behind, the step is invalid, and the next step
    repeats its rate; a second invalid step in a row ends the search.

    The result is a bracket: the highest rate that met the objective, and the lowest rate that failed it. The ends of
    the search range are not measured, so a bracket that reaches an end of the range is open on that side. Chance may
    decide a step near the highest rate, so a replicate is a whole search, not a repeated step.

    Parameters
    ----------
    load : KafkaOpenLoop
        The load of every step, except its rate. Choose a long `duration_s`: records of one second have similar
        latencies, so the quantile should depend on many seconds.
    what : "end to end" or "publish"
        Latency until receipt, of all groups together, or until acknowledgement.

    Examples
    --------
    >>> search = KafkaRateSearch(KafkaOpenLoop(1), 100.0, 500.0, 8_000.0)
    >>> search.first_rate, round(search.factor, 3)
    (2000.0, 1.022)
    """

    load: KafkaOpenLoop
    objective_ms: float = bounded(MISSING, 0.001, 3.6e6)
    lowest_records_per_s: float = bounded(MISSING, 0.1, 1e6)
    highest_records_per_s: float = bounded(MISSING, 0.1, 1e6)
    quantile: float = bounded(0.99, 0, 1)
    steps: int = bounded(7, 1, 30)
    what: str = one_of(END_TO_END, (END_TO_END, PUBLISH))

    name: ClassVar[str] = "kafka_rate_search"

    def __post_init__(self):
        if isinstance(self.load, Mapping):  # as a manifest holds it
            object.__setattr__(self, "load", KafkaOpenLoop(**self.load))
        if not isinstance(self.load, KafkaOpenLoop):
            raise refusal("KafkaRateSearch load", self.load, "a KafkaOpenLoop")
        check_declared(self)
        check_number("KafkaRateSearch quantile", self.quantile, 0, 1, above=True)
        if not self.quantile < 1:
            allowed = "below 1: no run contains the slowest possible record"
            raise refusal("KafkaRateSearch quantile", self.quantile, allowed)
        if not self.lowest_records_per_s < self.highest_records_per_s:
            raise ParameterError(
                f"KafkaRateSearch lowest_records_per_s is {self.lowest_records_per_s:g}; allowed: less than "
                f"{self.highest_records_per_s:g}, highest_records_per_s."
            )
        self.at(self.highest_records_per_s)  # raises if that would send too much

    def __str__(self) -> str:
        return (
            f"search: highest of {self.lowest_records_per_s:g} to {self.highest_records_per_s:g} records/s with "
            f"p{100 * self.quantile:g} {self.what} within {self.objective_ms:g} ms, {self.steps} steps of {self.load}"
        )

    # Attributes that a trial needs of its load

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
        """The ratio of the bracket's ends after all steps."""
        return (self.highest_records_per_s / self.lowest_records_per_s) ** (0.5**self.steps)

    def at(self, rate: float) -> KafkaOpenLoop:
        """Return the load at a given rate."""
        return replace(self.load, rate_records_per_s=float(rate))

    def session(self, *where) -> _SearchSession:
        """
        Return the session of a search; it calls `when_sending` when the first step starts.

        The session writes kafka_rate_search/<stem>.search.json with the steps and the bracket, and the files of each
        step's load as <stem>.step-<number>. Its `run` raises ExperimentError, with what was measured so far, if a load
        fails.
        """
        return _SearchSession(self, *where)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration of all steps."""
        return self.steps * (self.load.expected_s(rtt_ms, rate_bps) + SETTLE_S)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the payload bytes that producers send if all steps are at the middle of the range."""
        return self.steps * self.at(self.first_rate).expected_bytes(rtt_ms, rate_bps)


def _middle(low: float, high: float) -> float:
    """Return the geometric mean of two rates, rounded to 0.1 records/s if that still lies between them."""
    middle = math.sqrt(low * high)
    return round(middle, 1) if low < round(middle, 1) < high else middle


class _SearchSession(ClientSession):
    """Run the steps of a search."""

    ended = ALL_STEPS

    def _measure(self) -> None:
        search, low, high = self.settings, None, None
        where = self.cluster, self.producer_hosts, self.consumer_hosts, self.folder
        self.steps: list[dict] = []
        for number in range(1, search.steps + 1):
            if number > 1:
                time.sleep(SETTLE_S)
            rate = _middle(low or search.lowest_records_per_s, high or search.highest_records_per_s)
            load, when_sending = search.at(rate), self.when_sending if number == 1 else None
            session = OpenLoopSession(load, *where, f"{self.stem}.step-{number}", when_sending, step=number)
            try:
                session.run()
            finally:
                self.files += session.files
            verdict = judged(search, load, *session.printed())
            low = rate if verdict["met"] else low
            high = rate if verdict["met"] is False else high
            about = {"step": number, "rate_records_per_s": rate}
            self.steps.append(about | verdict | {"met_until": low, "failed_from": high})
            if [step["met"] for step in self.steps[-2:]] == [None, None]:
                self.ended = FELL_BEHIND
                return

    def _keep(self, error: str | None) -> None:
        about = {"format": 1, "settings": asdict(self.settings), "steps": self.steps}
        self._write("search.json", about | {"ended": error or self.ended, "error": error})


def judged(search, load, producers: list[list[dict]], groups: list[list[dict]]) -> dict:
    """
    Decide whether a step met the objective, from the per-second output of each producing process and each group.

    Returns value_ms (the quantile; None if it falls on a lost record), n and n_lost of the latencies that count,
    backlog_grew, fell_behind, and met (None if the generator fell behind).
    """
    seconds = range(ceil(load.warmup_s - 1e-9), ceil(load.length_s - 1e-9))
    sent, *received = ([line for line in of if line["second"] in seconds] for of in (list(chain(*producers)), *groups))
    published, latency = _counts(sent, "publish"), _counts(chain(*received), "latency")
    n = sum(line["n_due"] for line in sent) * (1 if search.what == PUBLISH else load.groups)
    latency = published if search.what == PUBLISH else latency
    n_lost = max(n - sum(latency.values()), 0)
    value_us = open_loop.quantile(latency, search.quantile, n_lost)
    backlog = [sum(line["backlog"] or 0 for line in sent if line["second"] == second) for second in seconds]
    sides = [(sent, "publish"), *((group, "latency") for group in received)]
    fell_behind = any(open_loop.fell_behind(_counts(lines, "late"), _counts(lines, what)) for lines, what in sides)
    backlog_grew = open_loop.backlog_grew(backlog, load.rate_records_per_s)
    within = value_us is not None and value_us <= 1_000 * search.objective_ms
    return {
        "value_ms": None if value_us is None else value_us / 1_000,
        "n": n,
        "n_lost": n_lost,
        "backlog_grew": backlog_grew,
        "fell_behind": fell_behind,
        "met": None if fell_behind else within and not n_lost and not backlog_grew,
    }


def _counts(lines: Iterable[dict], name: str) -> Counter:
    counts: Counter = Counter()
    for line in lines:
        counts.update(dict(zip(line[name][::2], line[name][1::2], strict=True)))
    return counts


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
    Plan searches for every system, in blocks as in `systems_by_steps`; their `setting` is "<system>, search".

    `rates` are the lowest and the highest rate of a `KafkaRateSearch`; `replicates` is the number of searches per
    system, which can be 0. `options` are those of `systems_by_steps`.

    Examples
    --------
    >>> pair = [{"name": "a"}, {"name": "b", "load": {"linger_ms": 0}}]
    >>> trials = rate_searches(pair, KafkaOpenLoop(1000), 100.0, (500, 4000), steps=3)
    >>> sorted(trial.setting for trial in trials)
    ['a, search', 'b, search']
    """
    if replicates == 0:
        return []
    one_step = {"rate_records_per_s": [load.rate_records_per_s]}
    searches = []
    for trial in systems_by_steps(systems, load, one_step, replicates, seed, **options):
        [one] = trial.experiments
        search = KafkaRateSearch(one.load, objective_ms, *rates, steps=steps)
        searches.append(Trial(f"{one.system}, search", (replace(one, load=search),), trial.block))
    return searches
