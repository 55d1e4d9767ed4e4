"""Detect a slow broker from outside during a load, and demote it. Read by `wanbench.read.ingest.detection`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from wanbench.change_detection import DetectorSettings
from wanbench.checks import check_fields, check_flag, refusal
from wanbench.errors import LabError
from wanbench.measure.experiments.base import ExperimentError
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .detection_session import DetectionSession


@dataclass(frozen=True)
class Detection:
    """
    A probe of every broker, an online detector, and, if asked, demotion of the broker it names.

    The probe is a producer on the source host, with its own topic: one partition per broker, replication 1 and acks=1.
    So the latency of a partition reflects one broker and the path to it: with more replicas and acks "all" a slow
    follower would make every leader look slow, and a moved leader would mix the histories of two brokers.
    `wanbench.change_detection` says how the detector works.

    A record that is unanswered after the detector's `limit_ms` counts with that latency at once: a stalled broker is
    detected within that time and a few windows.

    A named broker is demoted if at most half of the brokers are in alarm: otherwise the cause is hardly one broker. It
    becomes the last replica of all partitions it leads, of all topics, and the first in-sync replica leads; at the end
    the earlier order and preferred leaders are restored, also after `BrokerActions` that change the same order.

    Every latency is stored, so that other detectors can be tried (`wanbench.pages.rolling_and_degraded.detection`).

    Parameters
    ----------
    detector : DetectorSettings
    interval_s : float
        Interval between two records to a broker.
    record_bytes : int
    demote_on_alarm : bool
    take_out : bool, optional
        Whether a demoted broker is also removed from the replicas of every partition that has another in-sync replica:
        then no record waits for it, and it copies nothing until it is restored. None: it continues to follow.
    settle_s : float
        Duration of the load before the detector begins to learn.
    duration_s : float
        Duration of `run`, without a load: an undisturbed hour shows the rate of false alarms.

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
            self, ("interval_s", 0.01, self.detector.window_s), ("settle_s", 0, 3600), ("duration_s", 1, 86_400)
        )

    def __str__(self) -> str:
        then = ", who is then demoted" if self.demote_on_alarm else ""
        return f"detection by {self.detector.method} on {1 / self.interval_s:g} records/s to each broker{then}"

    @contextmanager
    def concurrently(
        self, source: Host, target: Host, folder: Path, stem: str, *, sending: Callable[[], bool] | None = None
    ) -> Iterator[list[RawFile]]:
        """
        Probe and detect while the block runs; the yielded list holds the raw files once the block is left:
        detection/<stem>.detection.json, which names <stem>.probe-0.jsonl.gz.

        Parameters
        ----------
        sending : callable, optional
            Returns True once the load sends, or False if it never will. None: learning begins at the start.

        Raises
        ------
        ExperimentError
            If there is no cluster, the probe cannot start or fails, or a demotion could not be undone. Never in place
            of an exception of the block.
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
        """Approximate bytes that the source sends to three brokers, two of them elsewhere, with headers."""
        return 2 * self.duration_s / self.interval_s * (self.record_bytes + 150)
