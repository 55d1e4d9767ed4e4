"""Run one schedule of broker actions: begin and end each action, record its times, and undo it."""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count
from typing import Any

from wanbench.errors import LATER, LabError, ParameterError
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.leadership import leaders, under_replicated

from .base import ExperimentError, cluster_of, links_of
from .broker_action import BrokerAction
from .broker_control import BrokerControl
from .concurrent_session import ConcurrentSession
from .session import Program, as_json

READY_S = 120.0  # timeout for a healthy cluster at the start
LONGEST_S = 86_400.0
NOT_BEGUN = "the load ended before the action was due"
TIMES = ("asked_at_s", "began_at_s", "in_force_at_s", "done_at_s", "healthy_at_s")
HOLDS_S = 1.0  # health must last this long to count, because a sample may predate the effect of the last action


class ActionsSession(ConcurrentSession):
    """A run of `settings` (a BrokerActions) on the source's cluster."""

    file = "actions"
    control: BrokerControl = LATER
    view: ClusterView = LATER

    def _begin(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._undone: list[str] = []
        self._stack = ExitStack()
        self._started_at_s: float = LATER
        self._before: dict[int, dict[tuple[str, int], int | None]] = {}
        cluster = cluster_of(self.host)
        if not isinstance(cluster, Cluster):
            raise ExperimentError("this lab did not start the cluster, so it cannot control the brokers")
        self.nodes = [broker.node_id for broker in cluster.brokers]
        for action in self.settings.actions:
            if action.node_id not in (None, *self.nodes):
                allowed = ", ".join(map(str, self.nodes))
                raise ParameterError(f"“{action}”: the cluster has no such broker; allowed: {allowed}.")
            if action.kind == "link":
                links_of(self.host)
        watch = cluster.watching(self.host, LONGEST_S, interval_s=self.settings.watch_interval_s, internal=True)
        process = self._stack.enter_context(watch)
        self.view = ClusterView(Program("watch", 0, self.host, process), self.nodes)
        self.control = BrokerControl(cluster, self.host, self.settings.patience_s)
        if not self._until(lambda: self.view.healthy_since(0.0), READY_S):
            raise ExperimentError(f"the cluster is not healthy after {READY_S:g} s")

    # The schedule

    def _follow(self) -> None:
        self._started_at_s = time.time()
        self._roll() if self.settings.rolling else self._keep_to_agenda()
        self._until(lambda: not self._pending(), self.settings.patience_s)

    def _roll(self) -> None:
        for node_id in self.nodes:
            turn_s = time.time()
            for action in self.settings.actions:
                action = replace(action, node_id=node_id)
                row = self._asked(action, turn_s)
                self._pause(row["asked_at_s"] - time.time())
                if end := self._begin_action(row, action):
                    self._pause(action.for_s)
                    self._end_action(row, end)
                if not self._until(lambda: not self._pending(), self.settings.patience_s):
                    late = f"partitions were still under-replicated after {self.settings.patience_s:g} s"
                    row["error"] = row["error"] or (None if self._over.is_set() else late)
                    self._before.clear()
            self._pause(self.settings.pause_s)

    def _keep_to_agenda(self) -> None:
        number, agenda = count(), []
        for action in self.settings.actions:
            row = self._asked(action, self._started_at_s)

            def begin(row: dict[str, Any] = row, action: BrokerAction = action) -> None:
                if end := self._begin_action(row, action):
                    due_s = time.time() + action.for_s
                    heapq.heappush(agenda, (due_s, next(number), lambda: self._end_action(row, end)))

            heapq.heappush(agenda, (row["asked_at_s"], next(number), begin))
        while agenda:
            due_s, _, do = heapq.heappop(agenda)
            self._pause(due_s - time.time())
            do()

    def _asked(self, action: BrokerAction, origin_s: float) -> dict[str, Any]:
        row = {"number": len(self.rows) + 1, "node_id": action.node_id, "kind": action.kind, "for_s": action.for_s}
        row |= dict.fromkeys(TIMES) | {"leaders_moved": None, "how": {}, "error": None}
        row["asked_at_s"] = origin_s + action.at_s
        self.rows.append(row)
        return row

    def _begin_action(self, row: dict[str, Any], action: BrokerAction) -> Callable[[], None] | None:
        """Begin an action; return the function that ends it, or None if it is already complete."""
        if self._over.is_set():
            row["error"] = NOT_BEGUN
            return None
        self._look()
        self._before[row["number"]] = leaders(self.view.topics)
        row["began_at_s"] = time.time()
        try:
            end = self.control.begin(action, self.view.topics, row)
        except (LabError, ParameterError) as error:
            row["error"] = str(error)[:500]
            self._before.pop(row["number"])
            return None
        if end is None:
            row["done_at_s"] = row["done_at_s"] or time.time()
        return end

    def _end_action(self, row: dict[str, Any], end: Callable[[], None]) -> None:
        try:
            end()
            row["done_at_s"] = time.time()
            if self._over.is_set() and row["done_at_s"] < row["began_at_s"] + row["for_s"]:
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
                row["leaders_moved"] = sum(before[key] != now[key] for key in before.keys() & now.keys())
            row["healthy_at_s"] = self.view.healthy_since(row["done_at_s"])
            if row["healthy_at_s"] is not None:
                self._before.pop(row["number"])

    def _pending(self) -> list[dict[str, Any]]:
        """Return the rows of finished actions for which no later sample has shown the cluster healthy yet."""
        return [row for row in self.rows if row["done_at_s"] and row["number"] in self._before]

    # Afterwards

    def _programs(self) -> Iterable[Program]:
        return [] if self.view is None else [self.view.program]

    def _end(self) -> None:
        try:
            if self.control is not None and self.rows:
                try:
                    self._undo()
                except BaseException:
                    self._undo()
                    raise
        finally:
            self._stack.close()
            self._stop()
            if self.view is not None:
                with suppress(LabError):
                    self.view.look()

    def _undo(self) -> None:
        undone, faults = self.control.undo()
        self._undone += undone
        self.faults += faults
        since_s, patience_s = time.time(), self.settings.patience_s
        with suppress(LabError):
            if not self._until(lambda: self.view.healthy_since(since_s), patience_s, to_the_end=True):
                self.faults.append(f"the cluster is not healthy {patience_s:g} s after the last action")
            self._attempt(lambda: self.control.cluster.ask(self.host, "elect"))

    def _content(self, printed: bytes) -> bytes:
        return b"".join(self.view.lines)

    def _document(self) -> dict[str, Any]:
        times = {"started_at_s": self._started_at_s, "ended_at_s": time.time()}
        return times | {"actions": self.rows, "undone": self._undone}


class ClusterView:
    """
    The latest output of a watcher (the program `watch`) of all topics, and since when the cluster has been healthy.

    The cluster is healthy if all brokers in `nodes` (node ids) are present and no partition of any topic is
    under-replicated or without a leader. `look` reads new output.

    Attributes
    ----------
    topics : list of dict
        The latest successful sample, in the form that `wanbench.measure.kafka.programs.admin.topics` returns. It was
        taken at `at_s` (Unix s; 0 if there is none yet).
    lines : list of bytes
        All samples in compact form: [at_s, took_s, node_id, brokers, state]. `node_id` is the broker that answered,
        `brokers` the node ids it knows, and `state` maps each topic to the [leader, in-sync replicas] of its
        partitions; these two are null if unchanged. A failed sample is [at_s, took_s, kind of error, message].
    """

    def __init__(self, program: Program, nodes: Collection[int]):
        self.program, self.nodes = program, set(nodes)
        self.at_s, self.topics, self.lines = 0.0, [], []
        self._healthy_at_s: list[float] = []
        self._before: tuple[Any, Any] = (None, None)

    def look(self) -> None:
        """Read the watcher's new output; raise ExperimentError if it has failed."""
        for sample in self.program.new_lines():
            if "group" not in sample:
                self._add_sample(sample)

    def healthy_since(self, after_s: float) -> float | None:
        """
        Return the Unix time in s since which the cluster has been healthy, by its samples at or after `after_s`.

        Return None if the latest sample is not healthy, or if all samples have been healthy for less than `HOLDS_S`.
        """
        times = self._healthy_at_s
        first = next(iter(times[bisect_left(times, after_s) :]), None)
        return None if first is None or times[-1] - first < HOLDS_S else first

    def _add_sample(self, sample: dict[str, Any]) -> None:
        times = [round(sample["at_s"], 6), sample["took_s"]]
        if "error" in sample:
            line = [*times, sample["error"]["kind"], sample["error"]["message"][:200]]
            self._healthy_at_s = []
        else:
            self.at_s, self.topics = sample["at_s"], sample["topics"]
            rows = {topic["name"]: topic["partitions"] for topic in self.topics}
            state = {name: [[row["leader"], row["isr"]] for row in partitions] for name, partitions in rows.items()}
            now = sample["brokers"], state
            line = [*times, sample["node_id"]]
            line += [None if new == old else new for new, old in zip(now, self._before, strict=True)]
            self._before = now
            if self.nodes <= set(sample["brokers"]) and not under_replicated(self.topics):
                self._healthy_at_s.append(sample["at_s"])
            else:
                self._healthy_at_s = []
        self.lines.append(as_json(line))
