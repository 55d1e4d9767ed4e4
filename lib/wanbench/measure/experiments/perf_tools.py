"""Run Kafka's command-line tools on hosts, with a time stamp for each line of output."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from wanbench.errors import LabError
from wanbench.measure.kafka.programs import line_times
from wanbench.measure.labs.base import Completed, Host
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw

from .base import keep


class Tool:
    """
    A running tool on a host.

    Parameters
    ----------
    host : Host
    recorder : sequence of str
        The command that starts `wanbench.measure.kafka.programs.line_times` on the host: see `recorders`.
    command : sequence of str
        The tool's own command.
    stem, what : str
        Its raw files are <stem>.<what>.txt and so on; `what` is, for example, "producer-0".
    """

    def __init__(self, host: Host, recorder: Sequence[str], command: Sequence[str], stem: str, what: str):
        self.host, self.stem, self.what = host, stem, what
        self._times = f"{host.scratch}/{stem}.{what}.lines"
        self.process = host.start([*recorder, self._times, *command])
        self.done: Completed | None = None
        self._arrivals: list[float] | None = None

    @property
    def name(self) -> str:
        """The tool's name and its host."""
        return f"{self.what} on {self.host.name}"

    def wait(self, timeout_s: float) -> Completed:
        """Wait for its end; CommandError after `timeout_s`."""
        self.done = self.process.wait(timeout_s)
        return self.done

    def so_far(self) -> Completed:
        """The output so far."""
        return self.done or self.process.so_far()

    def stop(self) -> Completed:
        """End it, if it still runs."""
        if self.done is None:
            self.done = self.process.stop()
        return self.done

    def arrivals(self) -> list[float]:
        """Unix times of its start, then of every line; empty if the file with the times cannot be fetched."""
        if self._arrivals is None:
            self._arrivals = []
            with tempfile.TemporaryDirectory() as folder, suppress(LabError, OSError, ValueError):
                copy = Path(folder, "lines")
                self.host.get(self._times, copy)
                self._arrivals = [float(line) for line in copy.read_text().splitlines()]
        return self._arrivals

    def line_times(self) -> list[tuple[float, bytes]]:
        """Every line of its output with its time."""
        return list(zip(self.arrivals()[1:], lines(self.stop().stdout), strict=False))

    def keep(self, folder: Path, experiment: str) -> list[RawFile]:
        """
        Keep its complete output as <stem>.<what>.txt, its stderr, and <stem>.<what>.lines.json: an object with
        `started_at_s` and, for every line of the output, its time in `lines`.
        """
        done = self.stop()
        files = keep(folder, experiment, f"{self.stem}.{self.what}", "txt", done)
        times = self.arrivals()
        if times:
            content = {"started_at_s": times[0], "lines": times[1 : len(lines(done.stdout)) + 1]}
            text = json.dumps(content).encode() + b"\n"
            ends = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
            files.append(write_raw(folder, experiment, f"{self.stem}.{self.what}.lines.json", text, **ends))
        return files


def recorders(hosts: Iterable[Host]) -> dict[str, list[str]]:
    """The command that time-stamps output lines, by host name, after putting the program there."""
    return {host.name: program_command(host, Path(line_times.__file__)) for host in hosts}


def lines(printed: bytes) -> list[bytes]:
    r"""
    The lines of an output, each with its time in lines.json; the last may lack its end.

    >>> lines(b"one\r\ntwo\nthr")
    [b'one\r', b'two', b'thr']
    """
    parts = printed.split(b"\n")
    return parts if parts[-1] else parts[:-1]


def stop_all(tools: Iterable[Tool]) -> None:
    """Stop all tools at the same time."""
    tools = list(tools)
    if tools:
        with ThreadPoolExecutor(len(tools)) as pool:
            list(pool.map(Tool.stop, tools))
