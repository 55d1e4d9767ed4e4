"""A load with one setting of link, background and clients, and concurrent measurements that explain its result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import LabError, ParameterError
from ..labs.base import Host
from ..links import LinkSettings
from ..runs import RawFile
from .base import ExperimentError, links_of
from .iperf3 import Iperf3
from .kafka_load import KafkaLoad
from .ping import Ping

_SET_S = 1.0
"""For setting the link."""


@dataclass(frozen=True)
class KafkaTrial:
    """
    A load from the source's region, with the link it runs over and what runs at the same time.

    Parameters
    ----------
    load : KafkaLoad
    link : LinkSettings, optional
        Both directions of the pair are set to this before the trial; None leaves them as they are.
    background : Iperf3, optional
        From source to target, started when all producers send. Choose it to last a little longer than what counts.
    ping : Ping, optional
        The same way.
    beside : tuple
        Further experiments that run at the same time: each is a `ConcurrentExperiment`, such as `HostMetrics`. A
        `KafkaProbe` slows a load that shares a leader with it, by a fifth at 5 records a second and by half at 20: see
        there. If it is not ready in time it leaves a row that says why, and the trial goes on without it.
    """

    load: KafkaLoad
    link: LinkSettings | None = None
    background: Iperf3 | None = None
    ping: Ping | None = None
    beside: tuple = ()

    name: ClassVar[str] = "kafka_trial"

    def __post_init__(self):
        for experiment in self.beside:
            if not hasattr(experiment, "concurrently"):
                raise ParameterError(
                    f"KafkaTrial beside has {experiment}; allowed: experiments with a method `concurrently`."
                )

    @property
    def rtt_ms(self) -> float | None:
        """The link's nominal round-trip time; None where the link is left as it is."""
        return None if self.link is None else 2 * self.link.delay_ms

    def __str__(self) -> str:
        parts = [f"trial: {self.load}"]
        if self.link is not None:
            parts.append(f"link {_link_text(self.link)}")
        parts += [f"background {self.background}"] if self.background else []
        parts += [str(self.ping)] if self.ping else []
        return "; ".join([*parts, *map(str, self.beside)])

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Set the link, start what runs concurrently, run the load; returns the raw files of all of it.

        Raises
        ------
        ExperimentError
            If the hosts are not joined by an emulated link that `link` asks for, or any part fails. All that was
            printed by any of them is kept.
        """
        if self.link is not None:
            for pair in ((source.region, target.region), (target.region, source.region)):
                links_of(source).set_link(*pair, **asdict(self.link))
        files: list[list[RawFile]] = []
        error, sending = None, _Sending()
        delayed = [_WhileSending(part, sending) for part in (self.background, self.ping) if part]
        try:
            with ExitStack() as stack:
                for part in (*self.beside, *delayed):
                    files.append(stack.enter_context(part.concurrently(source, target, folder, stem)))
                files.append(self.load.run(source, target, folder, stem, when_sending=sending.begin))
        except LabError as failed:
            error = failed
            files.append(list(getattr(failed, "files", ())))
        kept = list({file.path: file for group in files for file in group}.values())
        if error is not None:
            raise ExperimentError(str(error), kept) from error
        return kept

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration: that of the load; background and pings last a little longer."""
        return _SET_S + self.load.expected_s(rtt_ms, rate_bps)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Bytes that the source sends; None where it depends on a rate that is not given."""
        parts = [part for part in (self.load, self.background, self.ping) if part is not None]
        sent = [part.expected_bytes(rtt_ms, rate_bps) for part in parts]
        return None if None in sent else sum(sent)


class _Sending:
    """Tells waiting threads that the load sends, or that it never will."""

    def __init__(self):
        self._decided, self._began = threading.Event(), False

    def begin(self) -> None:
        self._began = True
        self._decided.set()

    def give_up(self) -> None:
        """Let the waiting threads end; does nothing once the load sends."""
        self._decided.set()

    def wait(self) -> bool:
        """Wait; whether the load sends."""
        self._decided.wait()
        return self._began


class _WhileSending:
    """An experiment with a fixed duration, run in a thread as soon as the load sends."""

    def __init__(self, experiment, sending: _Sending):
        self._experiment, self._sending = experiment, sending

    @contextmanager
    def concurrently(self, source: Host, target: Host, folder: Path, stem: str) -> Iterator[list[RawFile]]:
        files: list[RawFile] = []
        errors: list[BaseException] = []

        def run():
            try:
                if self._sending.wait():
                    files.extend(self._experiment.run(source, target, folder, stem))
            except BaseException as error:
                files.extend(getattr(error, "files", ()))
                errors.append(error)

        thread = threading.Thread(target=run, name=f"{self._experiment.name} of {stem}", daemon=True)
        thread.start()
        try:
            yield files
        finally:
            self._sending.give_up()
            thread.join()
        if errors:
            raise errors[0]


def _link_text(link: LinkSettings) -> str:
    parts = [f"{link.delay_ms:g} ms one way"]
    parts += [f"± {link.jitter_ms:.3g} ms"] if link.jitter_ms else []
    parts += [f"{link.loss:.2g} lost"] if link.loss else []
    parts += [f"{link.rate_bps / 1e6:g} Mbit/s"] if link.rate_bps else []
    return ", ".join(parts)
