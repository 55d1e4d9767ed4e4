"""One run of a schedule of broker actions: starts, ends, times and undoes them."""

from __future__ import annotations

import heapq
import json
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

from wanbench.errors import LabError, ParameterError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.leadership import leaders, under_replicated
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, cluster_of, links_of
from .broker_acts import Acts
from .session import Program, kept

LOOK_S = 0.05
READY_S = 120.0
"""Timeout for a healthy cluster at the start."""
JOIN_S = 240.0
"""
Timeout for a running action at the end of the load: a controlled stop may take a minute, an answer from the cluster
another.
"""
LONGEST_S = 86_400.0
NOT_BEGUN = "the load ended before it was due"
TIMES = ("asked_at_s", "began_at_s", "in_force_at_s", "done_at_s", "healthy_at_s")


class ActionsSession:
    """A run of `settings` (a BrokerActions) on the cluster of `source`: `start`, perhaps `wait`, and `end`."""

    def __init__(self, settings, source: Host, folder: Path, stem: str, sending: Callable[[], bool] | None):
        self.settings, self.host, self.folder, self.stem = settings, source, folder, stem
        self.sending = sending
        self.files: list[RawFile] = []
        self.rows: list[dict] = []
        self.acts: Acts | None = None
        self.view: ClusterView | None = None
        self._undone: list[str] = []
        self._faults: list[str] = []
        self._stack = ExitStack()
        self._over, self._driver = threading.Event(), None
        self._started_at_utc, self._started_at_s = now_utc(), None
        self._before: dict[int, dict] = {}

    def start(self) -> None:
        """Watch the cluster, wait until it is healthy, and start the schedule in a separate thread."""
        cluster = cluster_of(self.host)
        if not isinstance(cluster, Cluster):
            raise ExperimentError("brokers of a cluster that this lab did not start cannot be controlled")
        self.nodes = [broker.node_id for broker in cluster.brokers]
        for action in self.settings.actions:
            if action.node_id is not None and action.node_id not in self.nodes:
                raise ParameterError(
                    f"“{action}”: the cluster has no such broker; allowed: {', '.join(map(str, self.nodes))}."
                )
            if action.kind == "link":
                links_of(self.host)
        watch = cluster.watching(self.host, LONGEST_S, interval_s=self.settings.watch_interval_s, internal=True)
        process = self._stack.enter_context(watch)
        self.view = ClusterView(Program("watch", 0, self.host, process), self.nodes)
        self.acts = Acts(cluster, self.host, self.settings.patience_s)
        if not self._until(lambda: self.view.healthy_since(0.0), READY_S):
            raise ExperimentError(f"the cluster is not healthy after {READY_S:g} s")
        self._driver = threading.Thread(target=self._drive, name="broker actions", daemon=True)
        self._driver.start()

    def wait(self, timeout_s: float) -> None:
        """Wait until all actions are done, at most this long."""
        self._driver.join(timeout_s)

    def end(self) -> list[str]:
        """End running actions, undo everything, and write the files; returns what could not be undone."""
        self._over.set()
        try:
            if self._driver is not None:
                self._driver.join(JOIN_S)
                if self._driver.is_alive():
                    self._faults.append(f"an action did not end within {JOIN_S:g} s")
            if self.acts is not None and self.rows:
                try:
                    self._undo()
                except BaseException:
                    self._undo()
                    raise
        finally:
            self._stack.close()
            self._keep()
        return self._faults

    # The schedule

    def _drive(self) -> None:
        try:
            if self.sending is not None and not self.sending():
                return
            self._started_at_s = time.time()
            self._roll() if self.settings.rolling else self._keep_to_agenda()
            self._until(lambda: not self._pending(), self.settings.patience_s)
        except LabError as error:
            self._faults.append(str(error))
        except Exception as error:  # an exception that ends a thread is seen by nobody
            self._faults.append(f"{type(error).__name__}: {error}")

    def _roll(self) -> None:
        for node_id in self.nodes:
            turn_s = time.time()
            for action in self.settings.actions:
                row, action = self._asked(replace(action, node_id=node_id), turn_s)
                self._pause(row["asked_at_s"] - time.time())
                if end := self._begin(row, action):
                    self._pause(action.for_s)
                    self._end(row, end)
                if not self._until(lambda: not self._pending(), self.settings.patience_s):
                    late = f"partitions were still under-replicated after {self.settings.patience_s:g} s"
                    row["error"] = row["error"] or (None if self._over.is_set() else late)
                    self._before.clear()
            self._pause(self.settings.pause_s)

    def _keep_to_agenda(self) -> None:
        number, agenda = count(), []
        for action in self.settings.actions:
            row, _ = self._asked(action, self._started_at_s)

            def begin(row=row, action=action):
                if end := self._begin(row, action):
                    due_s = time.time() + action.for_s
                    heapq.heappush(agenda, (due_s, next(number), lambda: self._end(row, end)))

            heapq.heappush(agenda, (row["asked_at_s"], next(number), begin))
        while agenda:
            due_s, _, do = heapq.heappop(agenda)
            self._pause(due_s - time.time())
            do()

    def _asked(self, action, origin_s: float):
        row = {
            "number": len(self.rows) + 1,
            "node_id": action.node_id,
            "kind": action.kind,
            "for_s": action.for_s,
            **dict.fromkeys(TIMES),
            "leaders_moved": None,
            "how": {},
            "error": None,
        }
        row["asked_at_s"] = origin_s + action.at_s
        self.rows.append(row)
        return row, action

    def _begin(self, row: dict, action):
        """Begin an action; returns a function that ends it, if it lasts."""
        if self._over.is_set():
            row["error"] = NOT_BEGUN
            return None
        self._look()
        self._before[row["number"]] = leaders(self.view.topics)
        row["began_at_s"] = time.time()
        try:
            end = self.acts.begin(action, self.view.topics, row)
        except (LabError, ParameterError) as error:
            row["error"] = str(error)[:500]
            self._before.pop(row["number"])
            return None
        if end is None:
            row["done_at_s"] = row["done_at_s"] or time.time()
        return end

    def _end(self, row: dict, end: Callable[[], None]) -> None:
        try:
            end()
            row["done_at_s"] = time.time()
            if self._over.is_set():
                row["how"]["cut_short"] = True
        except LabError as error:
            row["error"] = str(error)[:500]
            self._before.pop(row["number"], None)

    # What is seen

    def _look(self) -> None:
        self.view.look()
        for row in self._pending():
            if row["leaders_moved"] is None and self.view.at_s > row["done_at_s"]:
                before, now = self._before[row["number"]], leaders(self.view.topics)
                both = [each for each in before if each in now]
                row["leaders_moved"] = sum(before[each] != now[each] for each in both)
            row["healthy_at_s"] = self.view.healthy_since(row["done_at_s"])
            if row["healthy_at_s"] is not None:
                self._before.pop(row["number"])

    def _pending(self) -> list[dict]:
        """Finished actions after which the cluster has not yet been seen healthy."""
        return [row for row in self.rows if row["done_at_s"] and row["number"] in self._before]

    def _pause(self, lasts_s: float) -> None:
        """Sleep, but not beyond the end of the load."""
        self._until(lambda: False, lasts_s)

    def _until(self, condition: Callable[[], object], timeout_s: float, *, to_the_end: bool = False) -> bool:
        """Wait for a condition; False on timeout or if the load ends."""
        end_s = time.monotonic() + timeout_s
        while True:
            self._look()
            if condition():
                return True
            left_s = end_s - time.monotonic()
            if left_s <= 0 or (self._over.is_set() and not to_the_end):
                return False
            time.sleep(min(LOOK_S, left_s))

    # Afterwards

    def _undo(self) -> None:
        undone, faults = self.acts.undo()
        self._undone += undone
        self._faults += faults
        since_s = time.time()
        with suppress(LabError):
            healthy = self._until(lambda: self.view.healthy_since(since_s), self.settings.patience_s, to_the_end=True)
            if not healthy:
                self._faults.append(f"the cluster is not healthy {self.settings.patience_s:g} s after the last action")
            self._faults += self.acts.elect()

    def _keep(self) -> None:
        described = []
        if self.view is not None:
            watcher = self.view.program
            with suppress(LabError):
                watcher.stop()
                self.view.look()
            if watcher.done is not None:
                files, named = kept(
                    self.folder, self.settings.name, self.stem, watcher, lambda _: b"".join(self.view.lines)
                )
                self.files += files
                described.append(watcher.describe() | {"file": named})
        about = {
            "format": 1,
            "settings": asdict(self.settings),
            "started_at_s": self._started_at_s,
            "ended_at_s": time.time(),
            "actions": self.rows,
            "undone": self._undone,
            "faults": self._faults,
            "programs": described,
        }
        content = json.dumps(about, indent=1).encode() + b"\n"
        ends = {"started_at_utc": self._started_at_utc, "ended_at_utc": now_utc()}
        name = f"{self.stem}.actions.json"
        self.files.append(write_raw(self.folder, self.settings.name, name, content, **ends))


HOLDS_S = 1.0
"""A cluster counts as healthy only after this long: a view may predate the last action."""


class ClusterView:
    """
    The watcher's latest output, and since when the cluster is healthy; `look` updates it.

    Healthy: all brokers are present, and no partition of any topic is under-replicated or leaderless.

    Parameters
    ----------
    program : Program
        A watcher of all topics, including Kafka's own.
    nodes : collection of int
        The brokers.

    Attributes
    ----------
    topics : list of dict
        The topics in the form of `wanbench.measure.kafka.programs.admin.topics`, at `at_s` (Unix s; 0 before the first sample).
    lines : list of bytes
        All samples, compact: [at_s, took_s, node_id, brokers, state], where brokers and state (by topic the [leader,
        replicas in sync] of each partition) are null if unchanged; [at_s, took_s, kind, message] of a failed sample.
    """

    def __init__(self, program: Program, nodes: Collection[int]):
        self.program, self.nodes = program, set(nodes)
        self.at_s, self.topics, self.lines = 0.0, [], []
        self._healthy_at_s: list[float] = []
        self._before: tuple = (None, None)

    def look(self) -> None:
        """Read new output of the watcher; ExperimentError if it has failed."""
        for sample in self.program.news():
            if "group" not in sample:
                self._saw(sample)

    def healthy_since(self, after_s: float) -> float | None:
        """
        Start of the first sample after a time since which the cluster is healthy; None if it is not healthy, or not for
        long enough.
        """
        times = self._healthy_at_s
        first = bisect_left(times, after_s)
        if first < len(times) and times[-1] - times[first] >= HOLDS_S:
            return times[first]
        return None

    def _saw(self, sample: dict) -> None:
        times = [round(sample["at_s"], 6), sample["took_s"]]
        if "error" in sample:
            line = [*times, sample["error"]["kind"], sample["error"]["message"][:200]]
            self._healthy_at_s = []
        else:
            self.at_s, self.topics = sample["at_s"], sample["topics"]
            state = {
                topic["name"]: [[row["leader"], row["isr"]] for row in topic["partitions"]] for topic in self.topics
            }
            now = sample["brokers"], state
            line = [*times, sample["node_id"]]
            line += [None if new == old else new for new, old in zip(now, self._before, strict=True)]
            self._before = now
            if self.nodes <= set(sample["brokers"]) and not under_replicated(self.topics):
                self._healthy_at_s.append(sample["at_s"])
            else:
                self._healthy_at_s = []
        self.lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
