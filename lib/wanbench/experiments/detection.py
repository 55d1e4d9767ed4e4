"""Detecting a slow broker from outside while a load runs, and demoting it. Read by `wanbench.ingest.detection`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from ..change_detection import DetectorSettings
from ..checks import check_fields, check_flag, refusal
from ..errors import LabError
from ..labs.base import Host
from ..runs import RawFile
from .base import ExperimentError
from .detection_session import DetectionSession


@dataclass(frozen=True)
class Detection:
    """
    A probe of every broker, a detector that reads it as it runs, and, if asked, the demotion of the broker it names.

    The probe is a producer on the source host, with a topic of its own: one partition led by each broker, with a
    replication of 1 and acks=1. So the latency of a partition holds the path to one broker and that broker's work, and
    no other's: with more replicas and acks "all" a slow follower would make every leader look slow, and a leader that
    moved would take its partition's history to another broker. `wanbench.change_detection` says how the detector works.

    A record that is not answered within the detector's `limit_ms` counts as that, then: a broker that stands still is
    seen within that time and a few windows.

    A broker that is named is demoted if no more than half of the brokers are in alarm: else the cause is hardly one
    broker. All partitions that it leads, of all topics, get it as their last replica, and the first in sync leads; at
    the end replicas are in their earlier order again, and preferred replicas lead. Beside `BrokerActions` that change
    the same order, what was there before either comes back.

    Every latency is kept, so that another detector can be tried on it (`wanbench.stats.time.detection`).

    Parameters
    ----------
    detector : DetectorSettings
    interval_s : float
        Between two records to a broker.
    record_bytes : int
    demote_on_alarm : bool
    take_out : bool, optional
        A broker that is demoted is also taken out of the replicas of every partition that another has in sync: nobody
        waits for it, and it copies nothing until what was there before is restored. None: it goes on following.
    settle_s : float
        Of the load, before the detector begins to learn.
    duration_s : float
        Of `run`, without a load: an hour undisturbed says how often the alarm is false.

    Examples
    --------
    >>> print(Detection(demote_on_alarm=True))
    detection by cusum on 10 records/s to each broker, who is then demoted
    """

    detector: DetectorSettings = field(default_factory=DetectorSettings)
    interval_s: float = 0.1
    record_bytes: int = 100
    demote_on_alarm: bool = False
    settle_s: float = 5.0
    duration_s: float = 300.0
    take_out: bool | None = None

    name: ClassVar[str] = "detection"
    waits_for_load: ClassVar[bool] = True

    def __post_init__(self):
        if isinstance(self.detector, dict):  # as a manifest holds it
            object.__setattr__(self, "detector", DetectorSettings(**self.detector))
        if not isinstance(self.detector, DetectorSettings):
            raise refusal("Detection detector", self.detector, "DetectorSettings")
        check_flag("Detection demote_on_alarm", self.demote_on_alarm)
        check_flag("Detection take_out", self.take_out, optional=True)
        check_fields(self, ("record_bytes", 1, 100_000), whole=True)
        check_fields(
            self,
            ("interval_s", 0.01, self.detector.window_s),
            ("settle_s", 0, 3600),
            ("duration_s", 1, 86_400),
        )

    def __str__(self) -> str:
        then = ", who is then demoted" if self.demote_on_alarm else ""
        return (
            f"detection by {self.detector.method} on {1 / self.interval_s:g} records/s to each broker{then}"
        )

    @contextmanager
    def concurrently(
        self,
        source: Host,
        target: Host,
        folder: Path,
        stem: str,
        *,
        sending: Callable[[], bool] | None = None,
    ) -> Iterator[list[RawFile]]:
        """
        Probe and detect while the block runs; the list that it yields holds the raw files as soon as the block is left:
        detection/<stem>.detection.json, which names <stem>.probe-0.jsonl.gz.

        Parameters
        ----------
        sending : callable, optional
            Returns True once the load sends, or False if it never will. None: learning begins at the start.

        Raises
        ------
        ExperimentError
            If there is no cluster, the probe cannot start or fails, or what was demoted could not be restored. Never in
            place of an exception of the block.
        """
        session = DetectionSession(self, source, folder, stem, sending)
        try:
            session.start()
        except LabError as error:
            session.end()
            raise ExperimentError(f"{self.name} cannot start: {error}", session.files) from error
        except BaseException:
            session.end()
            raise
        succeeded = False
        try:
            yield session.files
            succeeded = True
        finally:
            faults = session.end()
            if faults and succeeded:
                raise ExperimentError(f"{self.name}: {'; '.join(faults)}", session.files)

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """Probe and detect for `duration_s`. Errors as in `concurrently`."""
        with self.concurrently(source, target, folder, stem) as files:
            time.sleep(self.duration_s)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration of `run`."""
        return self.duration_s + 5.0

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Bytes that the source sends to three brokers, two of them elsewhere, with headers roughly."""
        return 2 * self.duration_s / self.interval_s * (self.record_bytes + 150)
