"""
Derive the state of a fault episode from what its clients and watchers print, and compact their output for raw files.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from .session import Program, as_json


class Health:
    """
    The current state of an episode's partitions, consumer group and traffic, read from what clients and watchers print.

    `replicas` lists the replicas of each partition, the preferred leader first. `look` reads new output. `sending` has
    the numbers of the producers that send; `answered` maps (producer, partition) to the Unix time of the last answer.
    """

    def __init__(self, programs: list[Program], replicas: list[list[int]]):
        self.programs, self.replicas = programs, replicas
        self._views: dict[int, tuple[float, list[dict[str, Any]] | None]] = {}
        self._assigned = defaultdict(set, {p.number: set() for p in programs if p.role == "consumer"})
        self._assigned_at_s = 0.0
        self.answered: dict[tuple[int, int], float] = {}
        self._received: dict[int, float] = {}
        self.sending: set[int] = set()
        self._positions: dict[int, dict[str, int]] = {}

    def look(self) -> None:
        """Read new output of the programs; raise ExperimentError if one has failed."""
        for program in self.programs:
            for line in program.new_lines():
                if program.role == "watch":
                    if "group" not in line:
                        topics = line.get("topics")
                        self._views[program.number] = line["at_s"], topics[0]["partitions"] if topics else None
                elif isinstance(line, list):
                    self._add_event(program, line)
                elif program.role == "producer" and "start_ns" in line:
                    self.sending.add(program.number)
                elif program.role == "consumer" and "positions" in line:
                    self._positions[program.number] = line["positions"]

    def awaited(self) -> list[str]:
        """Return sentences on what still prevents the episode from beginning; the list is empty if it can begin."""
        of_role = {role: [p for p in self.programs if p.role == role] for role in ("producer", "consumer", "watch")}
        idle = [program for program in of_role["producer"] if program.number not in self.sending]
        sentences = [f"{program} has not begun to send" for program in idle]
        if self.group_since() is None:
            held = ", ".join(f"{program} {sorted(self._assigned[program.number])}" for program in of_role["consumer"])
            sentences.append(
                f"not each of {len(self.replicas)} partitions is assigned to one consumer: {held or 'no consumers'}"
            )
        if self.in_sync_since(0.0) is None:
            views = [(program, self._views.get(program.number, (0.0, None))[1]) for program in of_role["watch"]]
            seen = ", ".join(f"{program} {[p['isr'] for p in seen] if seen else 'nothing'}" for program, seen in views)
            sentences.append(f"not every watcher sees all replicas in sync: {seen or 'no watchers'}")
        return sentences

    def group_since(self) -> float | None:
        """
        Return the Unix time in s since which each partition has had exactly one consumer, and no consumer has been idle
        that could have had a partition; None if this is not so now.
        """
        held = [number for numbers in self._assigned.values() for number in numbers]
        complete = sorted(held) == list(range(len(self.replicas)))
        idle = sum(not numbers for numbers in self._assigned.values())
        spare = max(0, len(self._assigned) - len(self.replicas))
        return self._assigned_at_s if complete and idle <= spare else None

    def in_sync_since(self, after_s: float) -> float | None:
        """
        Return the Unix time of the newest sample if every watcher's latest sample shows all replicas in sync.

        Return None otherwise, or if one of these samples was taken before `after_s`.
        """
        return self._all_see(after_s, lambda isr, leader, replicas: set(isr) == set(replicas))

    def led_as_preferred_since(self, after_s: float) -> float | None:
        """
        Return the Unix time of the newest sample if, in every watcher's latest sample, all preferred leaders lead.

        Return None otherwise, or if one of these samples was taken before `after_s`.
        """
        return self._all_see(after_s, lambda isr, leader, replicas: leader == replicas[0])

    def flows(self, after_s: float) -> bool:
        """
        Return whether, since the Unix time `after_s`, every partition has acknowledged a record of each producer and
        delivered a record to a consumer.
        """
        partitions = range(len(self.replicas))
        answered = [self.answered.get((producer, number), 0) for producer in self.sending for number in partitions]
        return all(at_s > after_s for at_s in (*answered, *(self._received.get(number, 0) for number in partitions)))

    def unread(self, ends: dict[str, int]) -> list[int]:
        """
        Return the partitions that no consumer has read to the end, according to the consumers' last reports.

        `ends` is the offset after the last record of each partition, by the partition's number as text.
        """
        read = {n: max(of.get(n, 0) for of in (*self._positions.values(), {})) for n in ends}
        return sorted(int(number) for number, end in ends.items() if read[number] < end)

    def region_of_most(self) -> str:
        """Return the region whose consumers hold the most partitions; the first one in a tie."""
        held: Counter[str] = Counter()
        for program in self.programs:
            if program.role == "consumer":
                held[program.host.region] += len(self._assigned[program.number])
        return max(held, key=held.__getitem__)

    def _all_see(self, after_s: float, holds: Callable[[list[int], int | None, list[int]], bool]) -> float | None:
        views = [self._views.get(p.number, (0.0, None)) for p in self.programs if p.role == "watch"]
        for at_s, seen in views:
            if at_s < after_s or seen is None or len(seen) != len(self.replicas):
                return None
            if not all(holds(p["isr"], p["leader"], own) for p, own in zip(seen, self.replicas, strict=True)):
                return None
        return max((at_s for at_s, _ in views), default=None)

    def _add_event(self, program: Program, line: list[Any]) -> None:
        if program.role == "producer":
            if line[0] == "acknowledged":
                self.answered[program.number, line[3]] = program.unix_s(line[2])
        elif line[0] == "received":
            self._received[line[3]] = program.unix_s(line[5])
        elif line[0] in ("assigned", "revoked", "lost"):
            at_s, numbers = program.unix_s(line[1]), set(line[2])
            held = self._assigned[program.number]
            self._assigned[program.number] = held | numbers if line[0] == "assigned" else held - numbers
            self._assigned_at_s = max(self._assigned_at_s, at_s)


def compact_samples(printed: bytes) -> bytes:
    """
    Compact a watcher's samples of a topic to [at_s, took_s, node_id, state].

    The state is the [leader, in-sync replicas] of each partition in order, or null if unchanged; a failed sample
    becomes [at_s, took_s, kind, message].
    """
    lines, before = [], None
    for sample in _samples(printed):
        if "group" not in sample:
            line = [round(sample["at_s"], 6), sample["took_s"], *_error(sample)]
            if "error" not in sample:
                topics = sample["topics"]
                state = [[p["leader"], p["isr"]] for p in topics[0]["partitions"]] if topics else []
                line += [sample["node_id"], None if state == before else state]
                before = state
            lines.append(line)
    return b"".join(map(as_json, lines))


def group_samples(printed: bytes) -> bytes:
    """
    Compact a watcher's samples of a group to [at_s, group, state, [[consumer, number of partitions] ...]].

    A failed sample becomes [at_s, group, kind, message]. `consumer` is the number at the end of its client.id.
    """
    lines = []
    for sample in _samples(printed):
        if "group" in sample:
            line = [round(sample["at_s"], 6), sample["group"], *_error(sample)]
            if "error" not in sample:
                members = [(member["client_id"], len(member["partitions"])) for member in sample["members"]]
                line += [sample["state"], sorted([int(name.rpartition("-")[2]), n] for name, n in members)]
            lines.append(line)
    return b"".join(map(as_json, lines))


def _samples(printed: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed[: printed.rfind(b"\n") + 1].splitlines()]


def _error(sample: dict[str, Any]) -> list[str]:
    return [sample["error"]["kind"], sample["error"]["message"][:200]] if "error" in sample else []
