"""
Read CPU times of brokers and machines, <stem>.processors.jsonl, into table metrics. The program
`wanbench.measure.kafka.programs.processor_use` writes them.

- Metrics of brokers have the source "process". They are counters since the start of the broker's process or control
  group: CPU time (`user_s`, `system_s`), the numbers of all and of throttled quota periods (`quota_periods`,
  `quota_waits`), and throttled time (`quota_waited_s`). `start_ticks` is not a counter, but changes when the process
  restarts.
- Metrics of machines have the source "processors". The counter `used_s` is CPU time since the first sample. Its
  subjects are the programs, by name; "driver", the process that drives the test; and, for the whole machine, "all
  processors" (including idle time), "busy processors" (without idle and iowait) and "interrupts" (irq and softirq).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from wanbench.errors import RawDataError

from .content import read_bytes
from .json_values import Members, object_of_line, read_json, text
from .rows import fitting

LARGEST_BYTES = 2**28
"""Size of more than a day of ten samples per second, at most 200 bytes each."""
MOST = 1e18
LATEST_S = 2**33
OF_BROKER = "JSON with node_id, host and ticks_per_s", "JSON with at_s and what was counted"
OF_MACHINE = "JSON with host and ticks_per_s", "JSON with at_s, machine (eight numbers) and programs (numbers by name)"
"""Descriptions of the first line and of the other lines, for errors."""
DRIVER_FILE = "JSON with at_s_and_used_s: two pairs of numbers"
COUNTED = {
    "user_s": ("user_ticks", "s"),
    "system_s": ("system_ticks", "s"),
    "quota_periods": ("nr_periods", ""),
    "quota_waits": ("nr_throttled", ""),
    "quota_waited_s": ("throttled_ns", "s"),
}
ALL, BUSY, INTERRUPTS, DRIVER = "all processors", "busy processors", "interrupts", "driver"
_IDLE, _INTERRUPTS = (3, 4), (5, 6)
"""Positions in the first line of /proc/stat of idle and iowait, and of irq and softirq."""


def read_brokers(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read a broker's samples, without context (run, test, regions, file); a RawDataError names an invalid line."""
    path = Path(path)
    first, samples = _samples(path, *OF_BROKER, needed=("node_id",))
    ticks, rows = first.number("ticks_per_s"), []
    per = {"user_ticks": ticks, "system_ticks": ticks, "throttled_ns": 1e9}
    for at_s, sample in samples:
        for name, (key, unit) in COUNTED.items():
            if (value := sample.number(key, most=MOST)) is not None:
                rows.append((at_s, name, value / per.get(key, 1), unit, True))
        if (started := sample.number("starting_ticks", most=MOST)) is not None:
            rows.append((at_s, "start_ticks", started, "", False))
    about = {"node_id": first.count("node_id"), "host": first.text("host"), "subject": "broker", "source": "process"}
    return _metrics(path, pd.DataFrame(rows, columns=["at_s", "metric", "value", "unit", "cumulative"]), about)


def read_machines(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read a machine's samples, without context (run, test, regions, file); a RawDataError names an invalid line."""
    path = Path(path)
    first, samples = _samples(path, *OF_MACHINE)
    rows, origin = [], []
    for at_s, sample in samples:
        machine, programs = sample.values.get("machine") or [], sample.members("programs")
        used = {text(name): programs.number(name, most=MOST) for name in programs.values}
        is_whole = isinstance(machine, list) and len(machine) == 8 and all(type(n) is int and n >= 0 for n in machine)
        if not is_whole or None in used.values():
            sample.refuse(str(sample.values)[:100], OF_MACHINE[1])
        origin = origin or machine
        grown = [now - then for now, then in zip(machine, origin, strict=True)]
        idle, interrupts = (sum(grown[at] for at in which) for which in (_IDLE, _INTERRUPTS))
        used |= {ALL: sum(grown), BUSY: sum(grown) - idle, INTERRUPTS: interrupts}
        rows += [(at_s, name, max(ticks or 0, 0) / (first.number("ticks_per_s") or 1)) for name, ticks in used.items()]
    driver = path.with_name(f"{path.name.partition('.processors.jsonl')[0]}.driver.json")
    rows += _driver(driver) if driver.exists() else []
    about = {"source": "processors", "host": first.text("host"), "metric": "used_s", "unit": "s", "cumulative": True}
    return _metrics(path, pd.DataFrame(rows, columns=["at_s", "subject", "value"]), about)


def _samples(
    path: Path, first_line: str, other_lines: str, needed: tuple[str, ...] = ()
) -> tuple[Members, Iterator[tuple[float, Members]]]:
    """Return the first line, which has host and clock ticks, and an iterator of the other lines' times and contents."""
    lines = read_bytes(path, most_bytes=LARGEST_BYTES)[1].split(b"\n")
    if lines.pop() or not lines:
        found = "a file that is empty or ends within a line"
        raise RawDataError(path, len(lines) + 1, found, other_lines if lines else first_line)
    first = object_of_line(path, 1, lines[0], first_line)
    values = (first.text("host"), first.number("ticks_per_s", most=1e6), *map(first.count, needed))
    if None in values or not values[1]:
        first.refuse(lines[0].decode("utf-8", "replace")[:100], first_line)

    def others() -> Iterator[tuple[float, Members]]:
        for number, line in enumerate(lines[1:], 2):
            sample = object_of_line(path, number, line, other_lines)
            at_s = sample.number("at_s", most=LATEST_S)
            if at_s is None:
                sample.refuse(line.decode("utf-8", "replace")[:100], other_lines)
            yield at_s, sample

    return first, others()


def _metrics(path: Path, frame: pd.DataFrame, about: Mapping[str, object]) -> dict[str, pd.DataFrame]:
    at_utc = pd.to_datetime(frame.pop("at_s").astype(float), unit="s", utc=True)
    return {"metrics": fitting(path, "metrics", {**frame, "at_utc": at_utc, **about})}


def _driver(path: Path) -> list[tuple[float, str, float]]:
    pairs = read_json(path, dict, DRIVER_FILE).get("at_s_and_used_s") or ()
    try:
        (began_s, before), (ended_s, after) = ((float(at), float(used)) for at, used in pairs)
    except (TypeError, ValueError):
        raise RawDataError(path, None, str(pairs)[:100], DRIVER_FILE) from None
    if not (0 <= began_s <= ended_s < LATEST_S and 0 <= before <= after < MOST):
        raise RawDataError(path, None, str(pairs)[:100], DRIVER_FILE)
    return [(began_s, DRIVER, 0.0), (ended_s, DRIVER, after - before)]
