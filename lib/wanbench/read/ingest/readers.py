"""The reader of each raw file. A new tool is one line of `READERS`."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from wanbench.checks import check_choice

from . import (
    broker_actions,
    broker_metrics,
    broker_pauses,
    cloudwatch,
    detection,
    flent,
    globalping,
    host_metrics,
    iperf3,
    kafka_fault,
    kafka_load,
    kafka_open_loop,
    lab,
    mtr,
    netperf,
    openmessaging,
    ping,
    processors,
    ripe_atlas,
)
from .content import plain_name
from .rows import Rows

NO_DATA = (".stderr.txt", ".server.txt", ".driver.json")
"""Endings of files in a run folder that only the reader of a neighbouring file reads."""


class Reader(NamedTuple):
    """
    The functions that read the files of an experiment, or of another tool.

    Attributes
    ----------
    experiment : str
        The experiment or tool that wrote the files, as run folders and `read_files` name it.
    read : callable
        From a path to rows by name of table, without their context; RawDataError for a file that cannot be read. If
        only parts of it cannot be read, "unread" has a row for each.
    pattern : str, optional
        The names of these files in a run folder. None: they do not occur there.
    loose : bool
        Whether `read_files` reads files of any name with it.
    tables : tuple of str
        Tables that are there, empty, even where no file could be read.
    """

    experiment: str
    read: Callable[..., dict[str, Rows]]
    pattern: str | None = None
    loose: bool = False
    tables: tuple[str, ...] = ()


READERS = (
    Reader("ping", ping.read, "*.txt", loose=True, tables=("echoes",)),
    Reader("iperf3", iperf3.read, "*.json", loose=True, tables=("transfers", "intervals")),
    Reader("cut", lab.read_cut, "*.json", tables=("cuts",)),
    Reader("cut", ping.read, "*.txt"),
    Reader("detection", detection.read, "*.detection.json"),
    Reader("shorten", ping.read, "*.txt"),
    Reader("links", lab.read_links, "*.json", tables=("link_counters",)),
    Reader("links", lab.read_samples, "*.samples.jsonl"),
    Reader("devices", lab.read_devices, "counters*.json"),
    Reader("host_metrics", host_metrics.read, "*.sadf.json", loose=True),
    Reader("broker_actions", broker_actions.read, "*.actions.json"),
    Reader("broker_metrics", broker_metrics.read, "*.prom.txt", loose=True),
    Reader("broker_processors", processors.read_brokers, "*.processors.jsonl"),
    Reader("cloudwatch", cloudwatch.read, "*.cloudwatch.json", loose=True),
    Reader("processor_use", processors.read_machines, "*.processors.jsonl"),
    Reader("kafka_cluster", broker_pauses.read, "*.jvm*.log", loose=True),
    Reader("kafka_cluster", broker_pauses.read, "*.server*.log"),
    Reader("kafka_fault", kafka_fault.read, "*.fault.json"),
    Reader("kafka_load", kafka_load.read, "*.producer-*.txt", loose=True),
    Reader("kafka_load", kafka_load.read, "*.consumer-*.txt"),
    Reader("kafka_load", kafka_load.read_batches, "*.batches.json"),
    Reader("kafka_load", kafka_load.read_times, "*.times.json"),
    Reader("kafka_open_loop", kafka_open_loop.read, "*.load.json"),
    Reader("kafka_rate_search", kafka_open_loop.read_search, "*.search.json"),
    Reader("end_to_end", kafka_load.read_round_trips, loose=True),
    Reader("openmessaging", openmessaging.read, "*.result.json", loose=True),
    Reader("netperf", netperf.read, loose=True),
    Reader("flent", flent.read, loose=True),
    Reader("globalping", globalping.read, loose=True),
    Reader("mtr", mtr.read, loose=True),
    Reader("ripe_atlas", ripe_atlas.read, loose=True),
)
ALWAYS = tuple(name for reader in READERS for name in reader.tables)
"""The tables of every run, in order, apart from those of its journal."""


def reader_in_run(experiment: str, name: str) -> Reader | None:
    """The reader of a file in a run folder by its name, compressed or not; None for a file without data."""
    if name.endswith(NO_DATA):
        return None
    readers = (reader for reader in READERS if reader.experiment == experiment and reader.pattern)
    names = {name, plain_name(name)}
    return next((each for each in readers if any(fnmatchcase(name, each.pattern) for name in names)), None)


def reader_of(experiment: str) -> Reader:
    """The reader of files of this tool; ParameterError lists the tools."""
    loose = {reader.experiment: reader for reader in READERS if reader.loose}
    return loose[check_choice("experiment", experiment, loose)]
