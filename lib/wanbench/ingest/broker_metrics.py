"""
Reads what `wanbench.kafka.scrape` printed, or one scrape of an exporter: rows of table metrics. Imports nothing that
measures.

- A scrape is parsed by prometheus_client. What is a counter, or is called like one (_total, _count, _sum, _bucket), is
  cumulative; `stats.rates` makes rates of those.
- The time of a scrape is the middle between question and answer.
- Each scrape also has the rows `up` (1, or 0 if the broker did not answer) and `scrape_duration_seconds`, as a
  Prometheus server would write them.
- Values that are not finite (a percentile of nothing is NaN) are left out: the broker says that it has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

import pandas as pd
from prometheus_client.parser import text_string_to_metric_families

from .. import tables
from ..errors import ParameterError, RawDataError
from ..tables import CONTEXT
from .iperf3_members import Members

SUFFIX = ".prom.txt"
LARGEST_BYTES = 2**31
COLUMNS = tuple(column for column in tables.table("metrics").columns if column not in CONTEXT)
CUMULATIVE = re.compile(r".*_(total|count|sum|bucket)")
UNITS = {
    "bytes": "bytes",
    "fraction": "fraction",
    "milliseconds": "ms",
    "ms": "ms",
    "percent": "%",
    "ratio": "fraction",
    "records": "records",
    "seconds": "s",
}
FIRST = "a line #scrapes with what is scraped in JSON, as wanbench.kafka.scrape prints it"
NEXT = "a line #scrape with its time and the number of its bytes in JSON"


def read(path) -> dict[str, pd.DataFrame]:
    """
    The metrics in a file of scrapes, without context; of a file that is one answer of an exporter, without times.

    RawDataError names the line that is none of Prometheus's, or where the file is cut short.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise RawDataError(path, None, error.strerror or error, "a file that can be read") from None
    if len(data) > LARGEST_BYTES:
        raise RawDataError(path, None, "a larger file", f"at most {LARGEST_BYTES:,} bytes")
    rows = list(_scrapes(path, data) if data.startswith(b"#scrapes ") else _one(path, data))
    values = {c.name: pd.Series([row.get(c.name) for row in rows], dtype=object) for c in COLUMNS}
    try:
        return {"metrics": pd.DataFrame({c.name: c.check(values[c.name], "metrics") for c in COLUMNS})}
    except ParameterError as error:
        raise RawDataError(path, None, error, "values that table metrics allows") from None


READS = {SUFFIX: read}


def _one(path, data) -> Iterator[dict]:
    if not data.strip():
        raise RawDataError(path, None, "nothing", "the answer of an exporter, or of several scrapes")
    yield from _metrics(path, 1, data, {"source": "prometheus"})


def _scrapes(path, data) -> Iterator[dict]:
    at, line_number = data.find(b"\n") + 1, 1
    if not at:
        raise RawDataError(path, 1, data.decode("utf-8", "replace"), FIRST)
    first = _members(path, 1, data[:at], b"#scrapes ", FIRST)
    about = {"source": "prometheus", "host": first.text("host"), "node_id": first.count("node_id")}
    while at < len(data):
        line_number += 1
        end = data.find(b"\n", at) + 1
        if not end:
            raise RawDataError(path, line_number, data[at:].decode("utf-8", "replace"), NEXT)
        said = _members(path, line_number, data[at:end], b"#scrape ", NEXT)
        size, at_s, took_s, error = _of_scrape(said)
        answer = data[end : end + size]
        at = end + size + 1
        if len(answer) < size or data[at - 1 : at] != b"\n":
            raise RawDataError(
                path, line_number, f"{len(answer)} bytes after {said.values}", f"{size}, and a line's end"
            )
        row = about | {
            "at_utc": datetime.fromtimestamp(at_s + took_s / 2, UTC),
            "subject": "",
            "cumulative": False,
        }
        yield row | {"metric": "up", "value": 0.0 if error else 1.0, "unit": ""}
        yield row | {"metric": "scrape_duration_seconds", "value": took_s, "unit": "s"}
        if not error:
            yield from _metrics(path, line_number + 1, answer, row)
        line_number += answer.count(b"\n") + 1


def _of_scrape(said: Members) -> tuple[int, float, float, str | None]:
    size, at_s, took_s = (
        said.count("bytes"),
        said.number("at_s", most=2**33),
        said.number("took_s", most=2**20),
    )
    if None in (size, at_s, took_s):
        said.refuse(json.dumps(said.values)[:100], "at_s, took_s and bytes")
    return size, at_s, took_s, said.text("error")


def _members(path, line_number, line, word, expected) -> Members:
    try:
        if not line.startswith(word):
            raise ValueError("another line")
        content = json.loads(line[len(word) :])
        if not isinstance(content, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace").strip(), expected) from None
    return Members(path, line_number, content)


def _metrics(path, line_number, answer, about) -> Iterator[dict]:
    try:
        text = answer.decode()
        families = list(text_string_to_metric_families(text))
    except UnicodeDecodeError as error:
        raise RawDataError(path, line_number, error, "text in UTF-8") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise _worst(path, line_number, text, error) from None
    for family in families:
        for sample in family.samples:
            try:
                value = float(sample.value)
            except OverflowError:
                value = float("inf")
            if isfinite(value):
                yield about | {
                    "subject": ", ".join(f"{name}={said}" for name, said in sample.labels.items()),
                    "metric": sample.name,
                    "value": value,
                    "unit": _unit(sample.name),
                    "cumulative": family.type == "counter" or CUMULATIVE.fullmatch(sample.name) is not None,
                }


def _worst(path, line_number, text, error) -> RawDataError:
    """The fault with the line that alone is refused too."""
    expected = f"the text format of Prometheus ({type(error).__name__}: {error})"
    for number, line in enumerate(text.split("\n"), line_number):
        try:
            list(text_string_to_metric_families(line))
        except (ValueError, IndexError, KeyError, TypeError, OverflowError):
            return RawDataError(path, number, line, expected)
    return RawDataError(path, None, error, expected)


def _unit(name: str) -> str:
    """
    The last word of a name that is a unit, as names of metrics are made in Prometheus.

    >>> _unit("kafka_bytes_in_total"), _unit("jvm_gc_collection_seconds_sum"), _unit("kafka_requests_total")
    ('bytes', 's', '')
    """
    if name.endswith(("_count", "_bucket")):
        return ""
    return next((UNITS[word] for word in reversed(name.split("_")) if word in UNITS), "")
