"""One setting of link, background and clients, under load, with everything beside it that explains the result."""

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
from .base import ExperimentError
from .iperf3 import Iperf3
from .kafka_load import KafkaLoad
from .ping import Ping

_SET_S = 1.0


@dataclass(frozen=True)
class KafkaTrial:
    """
    A load on the source's region, with link, background traffic, pings and metrics of its own.

    Parameters
    ----------
    load : KafkaLoad
    link : LinkSettings, optional
        Both directions of the pair are set to this before the trial; None leaves them as they are.
    background : Iperf3, optional
        From source to target, started when all producers send. Choose it to last a little longer than what counts.
    ping : Ping, optional
        The same.
    beside : tuple
        Further experiments that run beside it and have a method `beside`, such as `HostMetrics`. A `KafkaProbe` slows a
        load that shares a leader with it, by a fifth at 5 records a second and by half at 20: see there. One that is
        not ready in time leaves a row that says why, and the trial goes on without it.
    """

    load: KafkaLoad
    link: LinkSettings | None = None
    background: Iperf3 | None = None
    ping: Ping | None = None
    beside: tuple = ()

    name: ClassVar[str] = "kafka_trial"

    def __post_init__(self):
        for each in self.beside:
            if not hasattr(each, "beside"):
                raise ParameterError(f"{each} cannot run beside a load: it has no method `beside`.")

    @property
    def rtt_ms(self) -> float | None:
        """The link's nominal round-trip time; None where the link is left as it is."""
        return None if self.link is None else 2 * self.link.delay_ms

    def __str__(self) -> str:
        parts = [f"trial: {self.load}"]
        if self.link is not None:
            parts.append(f"link {_spelled(self.link)}")
        parts += [f"background {self.background}"] if self.background else []
        parts += [str(self.ping)] if self.ping else []
        return "; ".join([*parts, *map(str, self.beside)])

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Set the link, start what runs beside, run the load; returns the raw files of all of it.

        Raises
        ------
        ExperimentError
            If the hosts are not joined by an emulated link that `link` asks for, or any part fails. All that was
            printed by any of them is kept.
        """
        if self.link is not None:
            if source.links is None:
                raise ExperimentError(
                    f"{source.name} has no emulated links; only a lab that has them can set one"
                )
            for pair in ((source.region, target.region), (target.region, source.region)):
                source.links.set_link(*pair, **asdict(self.link))
        files: list[list[RawFile]] = []
        error, gate = None, _Gate()
        alongside = [_Alongside(each, gate) for each in (self.background, self.ping) if each]
        try:
            with ExitStack() as stack:
                for each in (*self.beside, *alongside):
                    files.append(stack.enter_context(each.beside(source, target, folder, stem)))
                files.append(self.load.run(source, target, folder, stem, when_sending=gate.open))
        except LabError as failed:
            error = failed
            files.append(list(getattr(failed, "files", ())))
        kept = list({file.path: file for group in files for file in group}.values())
        if error is not None:
            raise ExperimentError(str(error), kept) from error
        return kept

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Expected duration: that of the load, which what goes with it outlasts a little."""
        return _SET_S + self.load.expected_s(rtt_ms, rate_bps)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Bytes that the source sends; None where it depends on a rate that is not given."""
        parts = [part for part in (self.load, self.background, self.ping) if part is not None]
        sent = [part.expected_bytes(rtt_ms, rate_bps) for part in parts]
        return None if None in sent else sum(sent)


class _Gate:
    """Where what goes with a load waits until the load sends, or never will."""

    def __init__(self):
        self._decided, self._is_open = threading.Event(), False

    def open(self) -> None:
        self._is_open = True
        self._decided.set()

    def close(self) -> None:
        """Let nobody pass who still waits; does nothing once it is open."""
        self._decided.set()

    def passed(self) -> bool:
        """Wait; whether the gate was opened."""
        self._decided.wait()
        return self._is_open


class _Alongside:
    """An experiment that ends by itself, run in a thread as soon as the load sends."""

    def __init__(self, experiment, gate: _Gate):
        self._experiment, self._gate = experiment, gate

    @contextmanager
    def beside(self, source: Host, target: Host, folder: Path, stem: str) -> Iterator[list[RawFile]]:
        files: list[RawFile] = []
        errors: list[BaseException] = []

        def run():
            try:
                if self._gate.passed():
                    files.extend(self._experiment.run(source, target, folder, stem))
            except BaseException as error:
                files.extend(getattr(error, "files", ()))
                errors.append(error)

        thread = threading.Thread(target=run, name=f"{self._experiment.name} of {stem}", daemon=True)
        thread.start()
        try:
            yield files
        finally:
            self._gate.close()
            thread.join()
        if errors:
            raise errors[0]


def _spelled(link: LinkSettings) -> str:
    parts = [f"{link.delay_ms:g} ms one way"]
    parts += [f"± {link.jitter_ms:g} ms"] if link.jitter_ms else []
    parts += [f"{link.loss:.2g} lost"] if link.loss else []
    parts += [f"{link.rate_bps / 1e6:g} Mbit/s"] if link.rate_bps else []
    return ", ".join(parts)
