"""
Choose the reader of each raw file. A new tool needs one line in `_BUILTIN`, or an entry point of another package.

An entry point in the group "wanbench.readers" has the name of the experiment or tool that wrote the files. It is a
`Reader` or a tuple of readers.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from wanbench.checks import check_choice
from wanbench.extensions import extensions

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
    probes,
    processors,
    ripe_atlas,
    route,
    thinning,
)
from .content import plain_name
from .rows import Rows

NO_DATA = (".stderr.txt", ".server.txt", ".driver.json")
"""Endings of files in a run folder that have no reader of their own."""


class Reader(NamedTuple):
    """
    A reader of some files of an experiment or tool.

    Attributes
    ----------
    read : callable
        A function of a path that returns rows by table name, without context (run, test, regions, file). It raises
        RawDataError for a file that cannot be read; table "unread" has a row for each part that cannot be read.
    pattern : str or None
        Shell pattern of the files' names in a run folder; None if run folders have no such files.
    loose : bool
        Whether `read_files` uses this reader, for files of any name.
    tables : tuple of str
        Tables that exist even if no file could be read; they are then empty.
    """

    read: Callable[..., dict[str, Rows]]
    pattern: str | None = None
    loose: bool = False
    tables: tuple[str, ...] = ()


_BUILTIN = {
    "ping": (Reader(ping.read, "*.txt", loose=True, tables=("echoes",)), Reader(thinning.read, "*" + thinning.ENDING)),
    "iperf3": Reader(iperf3.read, "*.json", loose=True, tables=("transfers", "intervals")),
    "cut": (Reader(lab.read_cut, "*.json", tables=("cuts",)), Reader(ping.read, "*.txt")),
    "detection": Reader(detection.read, "*.detection.json"),
    "probes": Reader(probes.read, "*.txt.gz"),
    "shorten": Reader(ping.read, "*.txt"),
    "links": (Reader(lab.read_links, "*.json", tables=("link_counters",)), Reader(lab.read_samples, "*.samples.jsonl")),
    "host_metrics": Reader(host_metrics.read, "*.sadf.json", loose=True),
    "broker_actions": Reader(broker_actions.read, "*.actions.json"),
    "broker_metrics": Reader(broker_metrics.read, "*.prom.txt", loose=True),
    "broker_processors": Reader(processors.read_brokers, "*.processors.jsonl"),
    "cloudwatch": Reader(cloudwatch.read, "*.cloudwatch.json", loose=True),
    "processor_use": Reader(processors.read_machines, "*.processors.jsonl"),
    "kafka_cluster": (
        Reader(broker_pauses.read, "*.jvm*.log", loose=True),
        Reader(broker_pauses.read, "*.server*.log"),
    ),
    "kafka_fault": Reader(kafka_fault.read, "*.fault.json"),
    "kafka_load": (
        Reader(kafka_load.read, "*.producer-*.txt", loose=True),
        Reader(kafka_load.read, "*.consumer-*.txt"),
        Reader(kafka_load.read_batches, "*.batches.json"),
        Reader(kafka_load.read_times, "*.times.json"),
    ),
    "kafka_open_loop": Reader(kafka_open_loop.read, "*.load.json"),
    "openmessaging": Reader(openmessaging.read, "*.result.json", loose=True),
    "netperf": Reader(netperf.read, loose=True),
    "flent": Reader(flent.read, loose=True),
    "globalping": Reader(globalping.read, loose=True),
    "mtr": Reader(mtr.read, loose=True),
    "ripe_atlas": Reader(ripe_atlas.read, loose=True),
    "route": Reader(route.read, "*.json"),
}
READERS = extensions("wanbench.readers", _BUILTIN)
"""A `Reader`, or a tuple of readers, by experiment or tool."""


def readers(experiment: str) -> tuple[Reader, ...]:
    """Return the readers of an experiment's or a tool's files; an empty tuple if the name is unknown."""
    found = READERS.get(experiment, ())
    return (found,) if isinstance(found, Reader) else tuple(found)


ALWAYS = tuple(table for name in _BUILTIN for reader in readers(name) for table in reader.tables)
"""Names of the tables that every run has, in order, besides the tables from its journal."""


def reader_in_run(experiment: str, name: str) -> Reader | None:
    """Return the reader of a file in a run folder by the file's name, compressed or not; None if there is none."""
    names = {name, plain_name(name)}
    of_experiment = () if name.endswith(NO_DATA) else readers(experiment)
    fitting = (one for one in of_experiment if one.pattern and any(fnmatchcase(name, one.pattern) for name in names))
    return next(fitting, None)


def loose_readers() -> dict[str, Reader]:
    """Return the readers that `read_files` can use, by tool."""
    return {name: reader for name in READERS for reader in readers(name) if reader.loose}


def reader_of(experiment: str) -> Reader:
    """Return the reader for files of the tool `experiment`; raise ParameterError for an unknown tool."""
    loose = loose_readers()
    return loose[check_choice("experiment", experiment, loose)]
