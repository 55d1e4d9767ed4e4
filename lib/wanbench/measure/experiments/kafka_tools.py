"""Run Kafka's performance tools on hosts: their arguments, and their output with the time of each line."""

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.kafka.programs import line_times
from wanbench.measure.labs.base import Completed, Host
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw

from .base import keep
from .load_settings import rack_of


class Tool:
    """
    A tool running on a host; `recorder` is the command that time-stamps its output (see `recorders`).

    Its raw files are <stem>.<what>.txt and so on; `what` is, for example, "producer-0".
    """

    def __init__(self, host: Host, recorder: Sequence[str], command: Sequence[str], stem: str, what: str):
        self.host, self.stem, self.what = host, stem, what
        self._times = f"{host.scratch}/{stem}.{what}.lines"
        self.process = host.start([*recorder, self._times, *command])
        self.done: Completed | None = None
        self._arrivals: list[float] | None = None

    def __str__(self) -> str:
        return f"{self.what} on {self.host.name}"

    def wait(self, timeout_s: float) -> None:
        """Wait for the tool's end; raise CommandError after `timeout_s`."""
        self.done = self.process.wait(timeout_s)

    def so_far(self) -> Completed:
        """Return the tool's result, or the output so far if the tool still runs."""
        return self.done or self.process.so_far()

    def stop(self) -> Completed:
        """Stop the tool if it still runs; return its output."""
        if self.done is None:
            self.done = self.process.stop()
        return self.done

    def arrivals(self) -> list[float]:
        """Return the Unix times in s of the tool's start and of each output line; [] if they cannot be fetched."""
        if self._arrivals is None:
            self._arrivals = []
            with tempfile.TemporaryDirectory() as folder, suppress(LabError, OSError, ValueError):
                copy = Path(folder, "lines")
                self.host.get(self._times, copy)
                self._arrivals = [float(line) for line in copy.read_text().splitlines()]
        return self._arrivals

    def line_times(self) -> list[tuple[float, bytes]]:
        """Stop the tool, and return (Unix time, line) for each line of its output."""
        return list(zip(self.arrivals()[1:], lines(self.stop().stdout), strict=False))

    def keep(self, folder: Path, experiment: str) -> list[RawFile]:
        """
        Keep the complete output as <stem>.<what>.txt, its stderr, and the times of its lines as
        <stem>.<what>.lines.json.

        The times file holds `started_at_s`, and in `lines` the time of each output line.
        """
        done = self.stop()
        files = keep(folder, experiment, f"{self.stem}.{self.what}", "txt", done)
        if times := self.arrivals():
            content = {"started_at_s": times[0], "lines": times[1 : len(lines(done.stdout)) + 1]}
            text = json.dumps(content).encode() + b"\n"
            ends: dict[str, Any] = {"started_at_utc": done.started_at_utc, "ended_at_utc": done.ended_at_utc}
            files.append(write_raw(folder, experiment, f"{self.stem}.{self.what}.lines.json", text, **ends))
        return files


def recorders(hosts: Iterable[Host]) -> dict[str, list[str]]:
    """Put the program that time-stamps output on hosts; return the command that runs it, by host name."""
    return {host.name: program_command(host, Path(line_times.__file__)) for host in hosts}


def lines(printed: bytes) -> list[bytes]:
    r"""
    Split output into lines, one for each time in lines.json; the last may be incomplete.

    >>> lines(b"one\r\ntwo\nthr")
    [b'one\r', b'two', b'thr']
    """
    parts = printed.split(b"\n")
    return parts if parts[-1] else parts[:-1]


def stop_all(tools: Iterable[Tool]) -> None:
    """Stop all tools concurrently."""
    tools = list(tools)
    if tools:
        with ThreadPoolExecutor(len(tools)) as pool:
            list(pool.map(Tool.stop, tools))


PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
CONSUMER_OPTIONS = {"receive.buffer.bytes": "--socket-buffer-size", "max.partition.fetch.bytes": "--fetch-size"}
"""Consumer settings that the tool accepts only as options; it overrides values that are given in any other way."""


def producer_arguments(
    load: Any, *, bootstrap: str, topic: str, number: int, payload: str | None, client_file: str | None
) -> list[str]:
    """
    Return the arguments of the producer tool; `payload` is the file of records on its host, or None for random letters.
    """
    rate = load.target_records_per_s
    arguments = ["--num-records", str(load.records_to_send)]
    arguments += ["--throughput", "-1" if rate is None else f"{rate:.15g}"]
    arguments += ["--record-size", str(load.record_bytes)] if payload is None else ["--payload-file", payload]
    arguments += ["--warmup-records", str(load.records_to_warm)] if load.records_to_warm else []
    settings = {
        "client.id": f"load-producer-{number}",
        "acks": load.acks,
        "batch.size": load.batch_bytes,
        "linger.ms": f"{load.linger_ms:g}",
        "compression.type": load.compression,
        "buffer.memory": load.buffer_bytes,
        "max.in.flight.requests.per.connection": load.max_in_flight,
    }
    if load.idempotence is not None:
        settings["enable.idempotence"] = str(load.idempotence).lower()
    common = _common_arguments(load, bootstrap, topic, client_file)
    return [*common, *arguments, "--command-property", *assigned(settings), *assigned(dict(load.producer_settings))]


def _common_arguments(load: Any, bootstrap: str, topic: str, client_file: str | None) -> list[str]:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic]
    arguments += ["--reporting-interval", str(round(load.reporting_interval_s * 1000))]
    arguments += ["--print-metrics"] if load.print_metrics else []
    return arguments + (["--command-config", client_file] if client_file else [])


def consumer_arguments(
    load: Any, *, bootstrap: str, topic: str, group: str, number: int, client_file: str | None, region: str = ""
) -> list[str]:
    """
    Return the arguments of the consumer tool. The tool ends after reading all of the topic's records, or when none
    arrives for the load's `consumer_timeout_s`.
    """
    arguments = [*_common_arguments(load, bootstrap, topic, client_file), "--group", group]
    arguments += ["--num-records", str(load.records_of_topic(int(topic.rpartition("-")[2])))]
    arguments += ["--timeout", str(round(load.consumer_timeout_s * 1000))]
    arguments += ["--show-detailed-stats"] if load.consumer_windows else []
    settings = {"client.id": f"load-consumer-{number}", **dict(load.consumer_settings)}
    if rack := rack_of(load.client_rack, region):
        settings["client.rack"] = rack
    for name, option in CONSUMER_OPTIONS.items():
        if name in settings:
            arguments.append(f"{option}={settings.pop(name)}")
    for setting in assigned(settings):
        arguments += ["--command-property", setting]
    return arguments


def assigned(settings: Mapping[str, object]) -> list[str]:
    """
    Return settings as "name=value", the tools' notation.

    >>> assigned({"acks": "all", "batch.size": 16384})
    ['acks=all', 'batch.size=16384']
    """
    return [f"{name}={value}" for name, value in settings.items()]


def topic_of(stem: str, number: int) -> str:
    """
    Return the name of one of a load's topics, from the stem of its raw files.

    >>> topic_of("0001-eu-us.1", 0)
    'load-0001-eu-us.1-0'
    """
    return f"load-{stem}-{number}"
