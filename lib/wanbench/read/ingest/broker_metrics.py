"""
Read scrapes by `wanbench.measure.kafka.programs.scrape`, or an exporter's text: rows of table metrics.

- A metric that is a counter, or is named like one (_total, _count, _sum, _bucket), is cumulative; `stats.time.rates`
turns these into rates. Metrics keep their names.
- A sample has the time printed with it, else the middle between request and response of its scrape.
- A series without times that occurs again is left out, and each repetition is a row of unread. Text that repeats many
is rejected: it holds several answers, which could not be distinguished.
- Each scrape also has the rows `up` (1, or 0 if the broker did not answer) and `scrape_duration_seconds`, as a
  Prometheus server would write them.
- Values that are not finite (a percentile of nothing is NaN) are left out: the broker has no value.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import decoded, read_bytes
from .exposition import NO_TIME, Samples
from .json_values import Members, object_of_line
from .rows import fitting

SUFFIX = ".prom.txt"
LARGEST_BYTES = 2**30
"""A day of scrapes every 5 s."""

FIRST = "a line #scrapes with what is scraped in JSON, as wanbench.measure.kafka.programs.scrape prints it"
NEXT = "a line #scrape with its time and the number of its bytes in JSON"


def read(path) -> dict[str, pd.DataFrame]:
    """
    The metrics in a file of scrapes, or of an exporter's text, without context.

    RawDataError names the line that a Prometheus server would reject, or where the file is truncated.
    """
    path, data = read_bytes(Path(path), most_bytes=LARGEST_BYTES)
    samples, about = Samples(path, len(data)), {}
    if data.startswith(b"#scrapes "):
        about = _scrapes(path, data, samples)
    else:
        text = decoded(path, data)
        del data
        samples.feed(text)
        if not samples.n:
            found = text.strip() and "no sample"
            raise RawDataError(path, None, found or "nothing", "the answer of an exporter, or of several scrapes")
    found = {"metrics": fitting(path, "metrics", _columns(samples) | about)}
    return found | ({"unread": samples.repeated} if samples.repeated else {})


def _columns(samples: Samples) -> dict:
    columns = samples.columns().to_pandas()
    times_us = np.frombuffer(samples.times_us, np.int64) if len(samples.values) else np.array([], np.int64)
    at = np.where(times_us == NO_TIME, np.datetime64("NaT", "us"), times_us.astype("datetime64[us]"))
    values = np.frombuffer(samples.values) if len(samples.values) else np.array([])
    at_utc = pd.Series(at).dt.tz_localize("UTC")
    return dict(columns.assign(value=values, at_utc=at_utc, source="prometheus").drop(samples.ambiguous))


def _scrapes(path, data: bytes, samples: Samples) -> dict:
    """Feed the answers of a file of scrapes; returns the columns that are constant in it."""
    at, line_number = data.find(b"\n") + 1, 1
    if not at:
        raise RawDataError(path, 1, data[:200].decode("utf-8", "replace"), FIRST)
    first = _members(path, 1, data[:at], b"#scrapes ", FIRST)
    about = {"host": first.text("host"), "node_id": first.count("node_id")}
    while at < len(data):
        line_number += 1
        end = data.find(b"\n", at) + 1
        if not end:
            raise RawDataError(path, line_number, data[at : at + 200].decode("utf-8", "replace"), NEXT)
        scrape = _members(path, line_number, data[at:end], b"#scrape ", NEXT)
        size, at_s, took_s, error = _of_scrape(scrape)
        answer = data[end : end + size]
        at = end + size + 1
        if len(answer) < size or data[at - 1 : at] != b"\n":
            raise RawDataError(
                path, line_number, f"{len(answer)} bytes after {scrape.values}", f"{size}, and a line's end"
            )
        at_us = round((at_s + took_s / 2) * 1_000_000)
        samples.add("up", 0.0 if error else 1.0, at_us)
        samples.add("scrape_duration_seconds", took_s, at_us)
        if not error:
            samples.feed(_text(path, answer, line_number + 1), line_number + 1, at_us, whole=True)
        line_number += answer.count(b"\n") + 1
    return about


def _text(path, answer: bytes, line_number: int) -> str:
    try:
        return answer.decode()
    except UnicodeDecodeError as error:
        at = line_number + answer.count(b"\n", 0, error.start)
        raise RawDataError(path, at, error, "text in UTF-8") from None


def _of_scrape(scrape: Members) -> tuple[int, float, float, str | None]:
    size, at_s = scrape.count("bytes"), scrape.number("at_s", most=2**33)
    took_s = scrape.number("took_s", most=2**20)
    if None in (size, at_s, took_s):
        scrape.refuse(json.dumps(scrape.values)[:100], "at_s, took_s and bytes")
    return size, at_s, took_s, scrape.text("error")


def _members(path, line_number, line, word, expected) -> Members:
    if not line.startswith(word):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace").strip(), expected)
    return object_of_line(path, line_number, line[len(word) :], expected)
