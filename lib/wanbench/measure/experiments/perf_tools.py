"""Run Kafka's command-line tools on hosts, with a time stamp for each line of output."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from wanbench.errors import LabError
from wanbench.measure.kafka.programs import line_times
from wanbench.measure.labs.base import Completed, Host
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw

from .base import keep
from .kafka_loads import rack_of


class Tool:
    """
    A running tool on a host, started by `recorder` (see `recorders`), which time-stamps its output.

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


PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
CONSUMER_OPTIONS = {"receive.buffer.bytes": "--socket-buffer-size", "max.partition.fetch.bytes": "--fetch-size"}
"""Consumer settings that the tool accepts as options only, and overrides elsewhere."""


def producer_arguments(
    load, *, bootstrap: str, topic: str, number: int, payload: str | None, client_file: str | None
) -> list[str]:
    """
    Arguments of the producer tool.

    Parameters
    ----------
    load : wanbench.measure.experiments.kafka_load.KafkaLoad
    number : int
        Number of the producer, for its client.id.
    payload : str or None
        The file of records on its host; None for the tool's own random letters.
    """
    rate = load.target_records_per_s
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic]
    arguments += ["--num-records", str(load.records_to_send)]
    arguments += ["--throughput", "-1" if rate is None else f"{rate:.15g}"]
    arguments += ["--record-size", str(load.record_bytes)] if payload is None else ["--payload-file", payload]
    arguments += ["--warmup-records", str(load.records_to_warm)] if load.records_to_warm else []
    arguments += ["--reporting-interval", str(round(load.reporting_interval_s * 1000))]
    arguments += ["--print-metrics"] if load.print_metrics else []
    arguments += ["--command-config", client_file] if client_file else []
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
    return [*arguments, "--command-property", *assigned(settings), *assigned(dict(load.producer_settings))]


def consumer_arguments(
    load, *, bootstrap: str, topic: str, group: str, number: int, client_file: str | None, region: str = ""
) -> list[str]:
    """Arguments of the consumer tool, which ends after the topic's records, or when none arrive for a while."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group", group]
    arguments += ["--num-records", str(load.records_of_topic(topic_number(topic)))]
    arguments += ["--timeout", str(round(load.consumer_timeout_s * 1000))]
    arguments += ["--reporting-interval", str(round(load.reporting_interval_s * 1000))]
    arguments += ["--show-detailed-stats"] if load.consumer_windows else []
    arguments += ["--print-metrics"] if load.print_metrics else []
    arguments += ["--command-config", client_file] if client_file else []
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
    Settings in the tools' syntax.

    >>> assigned({"acks": "all", "batch.size": 16384})
    ['acks=all', 'batch.size=16384']
    """
    return [f"{name}={value}" for name, value in settings.items()]


def topic_name(stem: str, number: int) -> str:
    """
    A load's topic name, from the stem of its raw files.

    >>> topic_name("0001-eu-us.1", 0)
    'load-0001-eu-us.1-0'
    """
    return f"load-{stem}-{number}"


def topic_number(name: str) -> int:
    """The number at the end of a topic name."""
    return int(name.rpartition("-")[2])
