"""Whether a cluster has recovered from a fault, from the output of watchers and clients."""

from __future__ import annotations

import json

from .kafka_fault_programs import Program


class Health:
    """
    Current state of partitions, group and traffic; `look` updates it.

    Parameters
    ----------
    programs : list of Program
        Clients and watchers.
    replicas : list of list of int
        The replicas of each partition, the preferred leader first.
    """

    def __init__(self, programs: list[Program], replicas: list[list[int]]):
        self.programs, self.replicas = programs, replicas
        self._views: dict[int, tuple[float, list | None]] = {}
        self._assigned: dict[int, set[int]] = {p.number: set() for p in programs if p.role == "consumer"}
        self._assigned_at_s = 0.0
        self._answered: dict[tuple[int, int], float] = {}
        self._received: dict[int, float] = {}
        self._sending: set[int] = set()
        self._positions: dict[int, dict[str, int]] = {}

    def look(self) -> None:
        """Read new output of the programs; ExperimentError if one has failed."""
        for program in self.programs:
            for line in program.news():
                if program.role == "watch":
                    self._saw(program.number, line)
                elif isinstance(line, list):
                    self._happened(program, line)
                elif program.role == "producer" and "start_ns" in line:
                    self._sending.add(program.number)
                elif program.role == "consumer" and "positions" in line:
                    self._positions[program.number] = line["positions"]

    def awaited(self) -> list[str]:
        """What still prevents an episode from beginning, a sentence each; empty once it can."""
        of_role = {
            role: [program for program in self.programs if program.role == role]
            for role in ("producer", "consumer", "watch")
        }
        sentences = [
            f"{program} has not begun to send" for program in of_role["producer"] if program.number not in self._sending
        ]
        if self.group_since() is None:
            held = ", ".join(f"{program} {sorted(self._assigned[program.number])}" for program in of_role["consumer"])
            sentences.append(
                f"the consumers do not hold each of {len(self.replicas)} partitions once: {held or 'there are none'}"
            )
        if self.in_sync_since(0.0) is None:
            seen = ", ".join(f"{program} {self._seen_by(program.number)}" for program in of_role["watch"])
            sentences.append(f"not every watcher sees all replicas in sync: {seen or 'there are none'}")
        return sentences

    def group_since(self) -> float | None:
        """Unix s since which the members hold all partitions between them, each at least one; None if they do not."""
        held = [number for numbers in self._assigned.values() for number in numbers]
        complete = sorted(held) == list(range(len(self.replicas)))
        idle = sum(not numbers for numbers in self._assigned.values())
        spare = max(0, len(self._assigned) - len(self.replicas))
        return self._assigned_at_s if complete and idle <= spare else None

    def in_sync_since(self, after_s: float) -> float | None:
        """
        Unix s of the newest sample if the latest sample of every watcher, begun after a time, shows all
        replicas in sync; None otherwise.
        """
        return self._all_see(after_s, lambda isr, leader, replicas: set(isr) == set(replicas))

    def led_as_preferred_since(self, after_s: float) -> float | None:
        """As `in_sync_since`, if preferred leaders lead all partitions."""
        return self._all_see(after_s, lambda isr, leader, replicas: leader == replicas[0])

    def flows(self, after_s: float) -> bool:
        """
        Whether since a given time every partition has answered each producer, and delivered a record to some consumer.
        """
        partitions = range(len(self.replicas))
        return all(
            self._answered.get((producer, partition), 0) > after_s
            for producer in self._sending
            for partition in partitions
        ) and all(self._received.get(partition, 0) > after_s for partition in partitions)

    def unread(self, ends: dict[str, int]) -> list[int]:
        """Partitions that no member has read to the end, according to the last report of each consumer."""
        read: dict[str, int] = {}
        for positions in self._positions.values():
            for number, position in positions.items():
                read[number] = max(position, read.get(number, 0))
        return sorted(int(number) for number, end in ends.items() if read.get(number, 0) < end)

    def region_of_most(self) -> str:
        """The region whose consumers hold the most partitions; the first in a tie."""
        held: dict[str, int] = {}
        for program in self.programs:
            if program.role == "consumer":
                held[program.host.region] = held.get(program.host.region, 0) + len(self._assigned[program.number])
        return max(held, key=held.get)

    def _seen_by(self, watcher: int) -> str:
        """The in-sync replicas of each partition in a watcher's last sample."""
        _, partitions = self._views.get(watcher, (0.0, None))
        return str([p["isr"] for p in partitions]) if partitions else "nothing"

    def _all_see(self, after_s, holds) -> float | None:
        seen = []
        for program in self.programs:
            if program.role != "watch":
                continue
            at_s, partitions = self._views.get(program.number, (0.0, None))
            if at_s < after_s or partitions is None or len(partitions) != len(self.replicas):
                return None
            if not all(
                holds(p["isr"], p["leader"], replicas) for p, replicas in zip(partitions, self.replicas, strict=True)
            ):
                return None
            seen.append(at_s)
        return max(seen, default=None)

    def _saw(self, number, sample):
        if "group" in sample:
            return
        topics = sample.get("topics")
        self._views[number] = (sample["at_s"], topics[0]["partitions"] if topics else None)

    def _happened(self, program, line):
        if program.role == "producer":
            if line[0] == "acknowledged":
                self._answered[program.number, line[3]] = program.unix_s(line[2])
        elif line[0] == "received":
            self._received[line[3]] = program.unix_s(line[5])
        elif line[0] in ("assigned", "revoked", "lost"):
            at_s, numbers = program.unix_s(line[1]), set(line[2])
            held = self._assigned[program.number]
            self._assigned[program.number] = held | numbers if line[0] == "assigned" else held - numbers
            self._assigned_at_s = max(self._assigned_at_s, at_s)


def compact_samples(printed: bytes) -> bytes:
    """
    A watcher's output in compact form: [at_s, took_s, node_id, state] per sample, where the state is [leader, in-sync
    replicas] of each partition in order, or null if unchanged; [at_s, took_s, kind, message] of a failed one.
    """
    lines, before = [], None
    for text in printed[: printed.rfind(b"\n") + 1].splitlines():
        sample = json.loads(text)
        if "group" in sample:
            continue
        times = [round(sample["at_s"], 6), sample["took_s"]]
        if "error" in sample:
            lines.append([*times, sample["error"]["kind"], sample["error"]["message"][:200]])
            continue
        topics = sample["topics"]
        state = [[p["leader"], p["isr"]] for p in topics[0]["partitions"]] if topics else []
        lines.append([*times, sample["node_id"], None if state == before else state])
        before = state
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def group_samples(printed: bytes) -> bytes:
    """
    Likewise for a group: [at_s, group, state, [[consumer, partitions] ...]], or [at_s, group, kind, message] of a
    failed sample. Consumers are those of the episode, whose client.id ends in their number.
    """
    lines = []
    for text in printed[: printed.rfind(b"\n") + 1].splitlines():
        sample = json.loads(text)
        if "group" not in sample:
            continue
        line = [round(sample["at_s"], 6), sample["group"]]
        if "error" in sample:
            line += [sample["error"]["kind"], sample["error"]["message"][:200]]
        else:
            members = [
                [int(member["client_id"].rpartition("-")[2]), len(member["partitions"])] for member in sample["members"]
            ]
            line += [sample["state"], sorted(members)]
        lines.append(line)
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
