"""Read output of `wanbench.measure.experiments.sampling`: rows of table link_samples."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from wanbench.errors import ParameterError, RawDataError

from .content import read_bytes
from .rows import core

COLUMNS = core("link_samples")
RENAMED = {"link_from": "from_region", "link_to": "to_region"}
LARGEST_BYTES = 2**30
"""Nine hours of samples each second of all 72 links of nine regions."""
EXPECTED = 'a JSON object with "answer_ms" and "links", a list of objects'
GROWING = (
    "at_s", "packets_sent", "packets_delivered", "bytes_delivered", "packets_lost", "packets_queue_dropped",
)  # fmt: skip
"""Time and counters, which never fall from one sample of a link to the next."""


def read(path) -> dict[str, pd.DataFrame]:
    """
    Samples of links, without context, in the order of the file.

    RawDataError names the line that is not a sample, goes back in time, or has counters that fall.
    """
    path = Path(path)
    lines = read_bytes(path, most_bytes=LARGEST_BYTES)[1].split(b"\n")
    if lines.pop():
        raise RawDataError(path, len(lines) + 1, "a line without an end", EXPECTED)
    rows, line_numbers = [], []
    for line_number, line in enumerate(lines, 1):
        found = _sample(path, line_number, line)
        rows += found
        line_numbers += [line_number] * len(found)
    typed = {c.name: _typed(path, c, [row[c.name] for row in rows], line_numbers) for c in COLUMNS}
    frame = pd.DataFrame(typed)
    _check_growth(path, frame, line_numbers)
    return {"link_samples": frame}


def _sample(path, line_number, line):
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, line_number, error, EXPECTED) from None
    links = content.get("links") if isinstance(content, dict) else None
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise RawDataError(path, line_number, line.decode("utf-8", "replace"), EXPECTED)
    answer = {"answer_ms": content.get("answer_ms")}
    return [{c.name: link.get(RENAMED.get(c.name, c.name)) for c in COLUMNS} | answer for link in links]


def _typed(path, column, values, line_numbers):
    try:
        return column.check(pd.Series(values, dtype=object), "link_samples")
    except ParameterError:
        for line_number, value in zip(line_numbers, values, strict=True):
            try:
                column.check(pd.Series([value], dtype=object), "link_samples")
            except ParameterError:
                found = f"{RENAMED.get(column.name, column.name)} = {str(value)[:80]!r}"
                raise RawDataError(path, line_number, found, column.allows) from None
        raise


def _check_growth(path, frame, line_numbers):
    before = frame.groupby(["link_from", "link_to"], sort=False)[[*GROWING]].shift()
    for name in GROWING:
        falls = (frame[name] < before[name]).fillna(False).to_numpy(dtype=bool)
        if falls.any():
            row = frame.iloc[falls.argmax()]
            found = f"{name} {row[name]} of the link from {row.link_from} to {row.link_to}"
            expected = f"at least {before[name].iloc[falls.argmax()]}, as it was before"
            raise RawDataError(path, line_numbers[falls.argmax()], found, expected)
