"""
Read output of `wanbench.measure.kafka.programs.processor_use`: rows of table metrics with the source "process".

Counters since the broker's process, or its control group, began: `user_s` and `system_s`, CPU time; `quota_periods` and
`quota_waits`, quota periods and throttled ones; `quota_waited_s`, throttled time. `start_ticks` is not a counter; it
changes when the process restarts.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from wanbench.errors import RawDataError

from .content import read_bytes
from .json_values import object_of_line
from .rows import fitting

LARGEST_BYTES = 2**28
"""More than a day of ten samples per second, of at most 200 bytes each."""
FIRST = "JSON with node_id, host and ticks_per_s"
NEXT = "JSON with at_s and what was counted"
COUNTED = {
    "user_s": ("user_ticks", "s"),
    "system_s": ("system_ticks", "s"),
    "quota_periods": ("nr_periods", ""),
    "quota_waits": ("nr_throttled", ""),
    "quota_waited_s": ("throttled_ns", "s"),
}
MOST = 1e18


def read(path) -> dict[str, pd.DataFrame]:
    """The samples, without context; RawDataError names an invalid line."""
    path = Path(path)
    lines = read_bytes(path, most_bytes=LARGEST_BYTES)[1].split(b"\n")
    if lines.pop():
        raise RawDataError(path, len(lines) + 1, "a line without an end", NEXT)
    if not lines:
        raise RawDataError(path, 1, "nothing", FIRST)
    first = object_of_line(path, 1, lines[0], FIRST)
    about = {"node_id": first.count("node_id"), "host": first.text("host")}
    ticks = first.number("ticks_per_s", most=1e6)
    if None in (*about.values(), ticks) or not ticks:
        raise RawDataError(path, 1, lines[0].decode("utf-8", "replace"), FIRST)
    rows = []
    for number, line in enumerate(lines[1:], 2):
        sample = object_of_line(path, number, line, NEXT)
        at_s = sample.number("at_s", most=2**33)
        if at_s is None:
            sample.refuse(line.decode("utf-8", "replace")[:100], NEXT)
        per = {"user_ticks": ticks, "system_ticks": ticks, "throttled_ns": 1e9}
        for name, (key, unit) in COUNTED.items():
            if (value := sample.number(key, most=MOST)) is not None:
                rows.append((at_s, name, value / per.get(key, 1), unit, True))
        if (started := sample.number("starting_ticks", most=MOST)) is not None:
            rows.append((at_s, "start_ticks", started, "", False))
    frame = pd.DataFrame(rows, columns=["at_s", "metric", "value", "unit", "cumulative"])
    at_utc = pd.to_datetime(frame.pop("at_s").astype(float), unit="s", utc=True)
    columns = {name: frame[name] for name in frame} | {"at_utc": at_utc, "subject": "broker", "source": "process"}
    return {"metrics": fitting(path, "metrics", columns | about)}
