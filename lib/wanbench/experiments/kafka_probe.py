"""End-to-end latency by a low-rate, open-loop probe. Read by `wanbench.ingest.kafka_probe`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..checks import check_choice, check_fields
from ..errors import ParameterError, WanbenchError
from ..kafka.programs.probe_record import HEAD
from ..labs.base import Host
from ..runs import RawFile
from .base import ExperimentError
from .kafka_checks import ACKS, check_placement, check_rack, check_settings, setting_pairs
from .kafka_probe_session import NotReady, ProbeSession

_START_S = 4.0
"""Time to start and end the programs, on an idle machine."""
_OVERHEAD_BYTES = 150
"""Approximate headers of TCP, IP, request and record batch, for one record."""


@dataclass(frozen=True)
class KafkaProbe:
    """
    Send small records on a fixed schedule, and time each from when it was due to its receipt.

    It resembles a service's health check: a producer on the source host, a consumer per group on the target host, and
    its own topic. The schedule is fixed beforehand and none is skipped, so a record that is sent late counts as late
    (coordinated omission: Tene 2013).

    The probe itself adds 3 to 5 ms to the path's delay at the median with the consumer next to the leader, and 6 ms if
    it waits for a replica across the path (``python benchmarks/kafka_probe.py delay replicas``, on two processors with
    other work).

    A probe slows an RTT-bound load (acks "all" over a WAN) with the same leader. Each follower has one fetch at a time
    in flight to a leader. A record of the probe completes it, and the load's next batch waits for the following fetch,
    up to a round trip. Over 20, 40 and 60 ms, with all of the load on the probe's leader, 1 record a second leaves the
    load 0.96 (0.89 to 1.03) of its own rate, 5 leave 0.82 (0.73 to 0.93) and 20 leave 0.55 (0.547 to 0.560); 20 a
    second led by another broker leave 0.97 (0.92 to 1.03) (``python benchmarks/kafka_probe.py cost``, 95 % intervals).
    Each group commits its position once a second, which is a record too. So:

    - give load and probe different leaders by `placement`, if there are enough brokers;
    - compare only loads that ran with the same probe, or all without;
    - compare two probes, or a probe and another benchmark, interleaved and not concurrently: each slows the other.

    The default interval balances that cost against the records that a tail needs: 300 a minute.

    Parameters
    ----------
    interval_s : float
        Interval between intended send times.
    duration_s : float
        Duration of the schedule; it ends earlier if a concurrent experiment does.
    record_bytes : int
        Size of a record's value.
    acks : "0", "1" or "all"
    linger_ms : float
        Time that the producer waits for more records for a batch.
    producers : int
        Number of producers, in one process; records go to them in turn. A broker handles the next request of a
        connection only after it has answered the previous one, with acks "all" after replication. If `interval_s` times
        `producers` is shorter than that, records wait for each other: table probes counts them (n_queued), and tails
        have a caution.
    groups : int
        Number of consumer groups, each a process that receives every record.
    partitions, replication : int
        Number of partitions of the topic, which records go to in turn, and of replicas of each.
    placement : tuple of tuple of int, "apart", optional
        The node ids of each partition's replicas, the preferred leader first. "apart": on leaders that lead no
        partition of another topic when the probe starts, such as the topic of a running load; ExperimentError if there
        is no such broker. None: Kafka places them.
    topic_settings : mapping of str
        Settings of the topic, such as {"min.insync.replicas": 2}.
    client_rack : str or None
        client.rack of the consumers: see `KafkaLoad`.
    group_protocol : "classic"
        The only protocol of the probe's client.
    idempotence : bool
        Whether producers are idempotent. Each then has only one request in flight to a partition at a time.
    drain_s : float
        Timeout for answers and records after the last send.
    start_timeout_s : float
        Timeout for everything to be ready: minutes, on a busy machine.
    hold_share, hold_ms : float
        To test the probe: the producer holds back this share of the records for `hold_ms` after their intended time,
        without delaying the others.
    clock_shift_ms : float
        To test the probe: the programs on the target use a clock that is ahead by this much. The offset between the
        clocks is then measured even on one machine.

    Examples
    --------
    >>> probe = KafkaProbe(interval_s=0.01, duration_s=30)
    >>> probe.records, probe.name
    (3000, 'kafka_probe')
    """

    interval_s: float = 0.2
    duration_s: float = 60.0
    record_bytes: int = 1_024
    acks: str = "all"
    linger_ms: float = 0.0
    producers: int = 1
    groups: int = 1
    partitions: int = 1
    replication: int = 1
    placement: tuple[tuple[int, ...], ...] | str | None = None
    topic_settings: Mapping[str, object] = ()
    client_rack: str | None = None
    group_protocol: str = "classic"
    idempotence: bool = False
    drain_s: float = 10.0
    start_timeout_s: float = 300.0
    hold_share: float = 0.0
    hold_ms: float = 0.0
    clock_shift_ms: float = 0.0

    name: ClassVar[str] = "kafka_probe"

    def __post_init__(self):
        check_fields(
            self,
            ("record_bytes", HEAD.size, 900_000),
            ("producers", 1, 64),
            ("groups", 1, 32),
            ("partitions", 1, 1_000),
            ("replication", 1, 9),
            whole=True,
        )
        check_fields(
            self,
            ("interval_s", 0.001, 3600),
            ("duration_s", 0.1, 86_400),
            ("linger_ms", 0, 60_000),
            ("drain_s", 0, 600),
            ("start_timeout_s", 1, 86_400),
            ("hold_share", 0, 1),
            ("hold_ms", 0, 60_000),
            ("clock_shift_ms", -1e9, 1e9),
        )
        check_placement(self, apart=True)
        check_rack(self)
        object.__setattr__(self, "topic_settings", setting_pairs(self, "topic_settings"))
        check_settings(self, "topic_settings", {})
        if self.group_protocol != "classic":
            raise ParameterError(
                f"KafkaProbe group_protocol is {self.group_protocol!r}; allowed: 'classic', the only one that "
                "kafka-python, the probe's client, has. Consumers of a KafkaLoad take group.protocol in "
                "consumer_settings."
            )
        if self.idempotence not in (True, False) or (self.idempotence and self.acks != "all"):
            raise ParameterError(
                f"KafkaProbe idempotence is {self.idempotence!r} with acks {self.acks!r}; allowed: True with acks "
                "'all', or False."
            )
        check_choice("KafkaProbe acks", self.acks, ACKS)

    def __str__(self) -> str:
        held = f", {100 * self.hold_share:g} % held by {self.hold_ms:g} ms" if self.hold_share else ""
        return (
            f"probe: {self.records} records of {self.record_bytes} bytes every {1000 * self.interval_s:g} ms, "
            f"acks {self.acks}, {self.groups} group{'s' * (self.groups > 1)}{held}"
        )

    @property
    def records(self) -> int:
        """Send times of the schedule."""
        return max(1, round(self.duration_s / self.interval_s))

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Probe for `duration_s`. Leaves kafka_probe/<stem>.probe.json with settings, leaders and the offset of the
        clocks, which names the other files: <stem>.producer.jsonl, <stem>.consumer-<group>.jsonl, the output of the
        exchange of time stamps, and stderr if there is any.

        Raises
        ------
        ExperimentError
            If there is no cluster, the topic cannot be made, or a program fails; what was measured is kept.
        """
        with self._session(source, target, folder, stem, needed=True) as session:
            session.wait()
        return session.files

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Iterator[list[RawFile]]:
        """
        Probe while the block runs, for at most `duration_s`; the yielded list holds the raw files once the block is
        left.

        If the probe is not ready after `start_timeout_s`, the block runs without it, and column error of table probes
        gives the reason.

        Raises
        ------
        ExperimentError
            As in `run` otherwise; never in place of an exception of the block.
        """
        with self._session(source, target, folder, stem, needed=False) as session:
            yield session.files

    @contextmanager
    def _session(self, source, target, folder, stem, *, needed: bool) -> Iterator[ProbeSession]:
        session = ProbeSession(self, source, target, folder, stem)
        try:
            session.start()
        except NotReady as error:
            session.abandon(str(error))
            if needed:
                raise ExperimentError(f"the probe cannot start: {error}", session.files) from error
        except BaseException as error:
            session.abandon(str(error) or type(error).__name__)
            if isinstance(error, WanbenchError):
                raise ExperimentError(f"the probe cannot start: {error}", session.files) from error
            raise
        if not session.started:
            yield session
            return
        try:
            yield session
        except BaseException:
            session.abandon()
            raise
        try:
            reasons = session.finish()
        finally:
            session.stop()
        if reasons:
            raise ExperimentError("; ".join(reasons), session.files)

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration if every record arrives: the schedule, plus start and end of the programs."""
        return self.records * self.interval_s + _START_S + 20 * rtt_ms / 1000

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Approximate bytes that the source sends, with Kafka's and network headers."""
        return float(self.records * (self.record_bytes + _OVERHEAD_BYTES))
