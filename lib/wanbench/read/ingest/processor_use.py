"""
Read output of `wanbench.measure.kafka.programs.processor_use`: rows of table metrics with the source "processors".

Metric `used_s` is processor time since the first sample: of each program, by name; of "driver", the process that drives
the test; and of the whole machine: "all processors" (idle time included), "busy processors" (without idle and iowait)
and "interrupts" (irq and softirq).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from wanbench.errors import RawDataError

from .broker_processors import LARGEST_BYTES, MOST
from .content import read_bytes
from .json_values import object_of_line, read_json
from .rows import fitting

FIRST = "JSON with host and ticks_per_s"
NEXT = "JSON with at_s, machine (eight numbers) and programs (numbers by name)"
DRIVER = "JSON with at_s_and_used_s: two pairs of numbers"
ALL, BUSY, INTERRUPTS, DRIVING = "all processors", "busy processors", "interrupts", "driver"
_IDLE, _INTERRUPTS = (3, 4), (5, 6)
"""Which numbers of /proc/stat's first line are idle and iowait, irq and softirq."""


def read(path) -> dict[str, pd.DataFrame]:
    """The samples, without context; RawDataError names an invalid line."""
    given, (path, content) = Path(path), read_bytes(Path(path), most_bytes=LARGEST_BYTES)
    lines = content.split(b"\n")
    if lines.pop() or not lines:
        raise RawDataError(path, len(lines) + 1, "a file that is empty or ends within a line", FIRST)
    first = object_of_line(path, 1, lines[0], FIRST)
    host, ticks_per_s = first.text("host"), first.number("ticks_per_s", most=1e6)
    if host is None or not ticks_per_s:
        first.refuse(lines[0].decode("utf-8", "replace")[:100], FIRST)
    rows, origin = [], None
    for number, line in enumerate(lines[1:], 2):
        sample = object_of_line(path, number, line, NEXT)
        at_s, machine = sample.number("at_s", most=2**33), sample.values.get("machine")
        used = {name: sample.members("programs").number(name, most=MOST) for name in sample.members("programs").values}
        is_whole = isinstance(machine, list) and len(machine) == 8 and all(type(n) is int and n >= 0 for n in machine)
        if at_s is None or not is_whole or None in used.values():
            sample.refuse(line.decode("utf-8", "replace")[:100], NEXT)
        origin = origin or machine
        grown = [now - then for now, then in zip(machine, origin, strict=True)]
        used[ALL] = sum(grown)
        used[BUSY] = sum(n for at, n in enumerate(grown) if at not in _IDLE)
        used[INTERRUPTS] = sum(grown[at] for at in _INTERRUPTS)
        rows += [(at_s, name, max(ticks, 0) / ticks_per_s) for name, ticks in used.items()]
    driver = given.with_name(f"{given.name.partition('.processors.jsonl')[0]}.driver.json")
    rows += _driver(driver) if driver.exists() else []
    frame = pd.DataFrame(rows, columns=["at_s", "subject", "value"])
    at_utc = pd.to_datetime(frame.pop("at_s").astype(float), unit="s", utc=True)
    about = {"source": "processors", "host": host, "metric": "used_s", "unit": "s", "cumulative": True}
    return {"metrics": fitting(path, "metrics", {name: frame[name] for name in frame} | {"at_utc": at_utc} | about)}


def _driver(path: Path) -> list[tuple]:
    pairs = read_json(path, dict, DRIVER).get("at_s_and_used_s")
    try:
        (began_s, before), (ended_s, after) = ((float(at), float(used)) for at, used in pairs)
    except (TypeError, ValueError):
        raise RawDataError(path, None, str(pairs)[:100], DRIVER) from None
    if not (0 <= began_s <= ended_s < 2**33 and 0 <= before <= after < MOST):
        raise RawDataError(path, None, str(pairs)[:100], DRIVER)
    return [(began_s, DRIVING, 0.0), (ended_s, DRIVING, after - before)]
