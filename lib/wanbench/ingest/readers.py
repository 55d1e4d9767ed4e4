"""Which reader a raw file is for, of Kafka's experiments, of what was measured beside them, or of another tool."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib import import_module

MODULES = {
    "kafka_load": ("kafka_load", "kafka_batches"),
    "kafka_probe": ("kafka_probe",),
    "host_metrics": ("host_metrics",),
    "broker_metrics": ("broker_metrics",),
    "links": ("link_samples",),
    "devices": ("devices",),
}
"""Experiment to the modules that read what it leaves; each has READS, patterns of file names to functions."""

LOOSE = (
    "kafka_load", "end_to_end", "openmessaging", "host_metrics", "broker_metrics", "netperf", "flent",
)  # fmt: skip
"""Modules that read files which some other script left."""


def reader(experiment: str, name: str) -> Callable | None:
    """The function that reads a raw file into tables; None if there is none here."""
    for module in MODULES.get(experiment, ()):
        for pattern, read in import_module(f".{module}", __package__).READS.items():
            if name.endswith(pattern) if pattern.startswith(".") else fnmatchcase(name, pattern):
                return read
    return None


def loose(experiment: str) -> Callable:
    """The function that reads a file of any name which this tool printed."""
    return import_module(f".{experiment}", __package__).read
