"""
Client metrics that Kafka's perf tools print at their end (--print-metrics).

One line is one metric: `producer-metrics:batch-size-avg:{client-id=perf-producer-client} : 16220.100`. A metric without
a numeric value has no row: version and commit of `app-info`, NaN for what never happened.
"""

from __future__ import annotations

import re

from .numbers import real

DECIMALS = 3
"""The tools' number of decimals."""

NO_NUMBERS = ("app-info:version", "app-info:commit-id")
LINE = re.compile(
    r"(?P<group>[A-Za-z][\w.-]*):(?P<name>[A-Za-z0-9][\w.-]*):\{(?P<labels>[^{}]*)\} *: (?P<value>[^ ].*)"
)
BEGINNING = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,200}:[A-Za-z0-9][\w.-]{0,200}:\{")
_VALUE = re.compile(r"-?\d{1,30}(?:[.,]\d+)?(?:E-?\d+)?")


def source_of(group: str, labels: str) -> str | None:
    """Whether a metric is a "producer" or "consumer" one, by its group or else its labels; None if unknown."""
    tools = ("producer", "consumer")
    by_group = (name for name in tools if group.startswith(name))
    return next(by_group, None) or next((name for name in tools if name in labels), None)


def row(line: re.Match, source: str) -> dict | None:
    """
    A row of table metrics, without its context and host; None without a numeric value.

    >>> line = LINE.match("consumer-metrics:io-time:{client-id=a, node-id=node-1} : 16,100")
    >>> metric = row(line, "consumer")
    >>> metric["metric"], metric["subject"], metric["value"]
    ('consumer-metrics:io-time', 'client-id=a, node-id=node-1', 16.1)
    """
    metric = f"{line['group']}:{line['name']}"
    text = line["value"].strip()
    if metric in NO_NUMBERS or not _VALUE.fullmatch(text):
        return None
    try:
        value = float(text) if "E" in text else real(text, DECIMALS)
    except ValueError:
        return None
    if value is None or not abs(value) < float("inf"):
        return None
    return {
        "source": source,
        "host": None,
        "subject": line["labels"],
        "metric": metric,
        "value": value,
        "unit": "",
        "cumulative": line["name"].endswith("-total"),
    }
