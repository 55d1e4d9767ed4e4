"""A watcher's view of a cluster: leaders, in-sync replicas, brokers present."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection

from wanbench.measure.kafka.leadership import under_replicated

from .kafka_fault_programs import Program

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
