"""
Read output of `sadf -j` from sysstat 10.1 to 12.7.9 into table metrics.

- Metrics keep the names that the file's version of sysstat uses ("usr" or "user", "rxkB"). What sysstat calls kB is
  1,024 bytes, so the unit is KiB.
- Values of processors, disks and network are means over the sample's interval; those of memory and load are values at
  its end.
- Only the statistics in `KINDS` are read.
- Times must be in UTC, as sadf prints them by default, in whole seconds.
- A file <name>.hosts.json next to <name>.sadf.json has the names of the hosts.
"""

import json
import re
from array import array
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import plain_name, read_text
from .json_values import Members, check_values, read_json
from .rows import fitting

SUFFIX = ".sadf.json"
LARGEST_BYTES = 512 * 2**20
"""A day of samples every second on 16 processors has about 430 MB."""

BYTES_PER_VALUE = 6
"""
A larger file may have at most one value per this many bytes; sysstat writes one per 16 bytes, or 11 if compacted with
jq.
"""

MOST_SUBJECTS = 100_000
"""Maximum number of processors, disks and interfaces; a host with containers has a few thousand interfaces in a day."""

WANTED_SUBJECTS = f"at most {MOST_SUBJECTS:,} processors, disks and interfaces"
LONGEST_INTERVAL_S = 1e6
"""Longer intervals are dropped: sysstat 10 printed a huge number with the first sample."""
ABOVE_100_PERCENT = 1.0
"""Percentage points by which the use of a processor may exceed 100 %, because of rounding."""

KINDS = {
    # key in the file: (subject, member with the device's name, of the machine (True) or the network, is it a mean)
    "cpu-load": ("cpu", "cpu", True, True),
    "cpu-load-all": ("cpu", "cpu", True, True),
    "disk": ("disk", "disk-device", True, True),
    "memory": ("memory", None, True, False),
    "queue": ("load", None, True, False),
    "net-dev": ("net", "iface", False, True),
    "net-edev": ("net", "iface", False, True),
    "net-tcp": ("tcp", None, False, True),
    "net-etcp": ("tcp", None, False, True),
}
UNITS = (
    # (subject, pattern of the metric's name, unit); the first match counts
    ("cpu", r".*", "%"),
    ("", r".*-percent|util|%.*", "%"),
    ("disk", r"tps", "1/s"),
    ("disk", r"(rd|wr|dc)_sec", "sectors/s"),
    ("disk", r"[rwd]kB", "KiB/s"),
    ("disk", r"areq-sz", "KiB"),
    ("disk", r"avgrq-sz", "sectors"),
    ("disk", r"await|svctm", "ms"),
    ("net", r"[rt]xkB", "KiB/s"),
    ("net", r".*", "packets/s"),
    ("tcp", r".*", "1/s"),
    ("memory", r".*", "KiB"),
)


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read output of `sadf -j`; a RawDataError names a value that is not JSON, not in UTC, impossible or mistyped."""
    path = Path(path)
    try:
        return {"metrics": fitting(path, "metrics", _columns(path))}
    except UnicodeEncodeError as error:
        raise RawDataError(path, None, error, "text in UTF-8") from None


def _document(path: Path) -> Members:
    _, text = read_text(path, most_bytes=LARGEST_BYTES)
    check_values(path, text, BYTES_PER_VALUE)
    try:
        content = json.loads(text, parse_constant=float)
    except json.JSONDecodeError as error:
        line = text[text.rfind("\n", 0, error.pos) + 1 :].partition("\n")[0].strip() or "the end"
        expected = f"complete JSON of sadf -j with decimal points (LC_ALL=C): {error.msg}"
        raise RawDataError(path, error.lineno, line, expected) from None
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, "JSON of sadf -j") from None
    if not isinstance(content, dict) or not isinstance(content.get("sysstat"), dict):
        raise RawDataError(path, None, text[:200], 'a JSON object with "sysstat", as sadf -j prints it')
    return Members(path, None, content["sysstat"], "sysstat")


def _hosts_of(path: Path) -> dict[bool, str] | None:
    """
    Return the names of the hosts on the machine (key True) and on the network (False); None if there is no file of
    names.
    """
    name = plain_name(path.name)
    about = path.with_name(name.removesuffix(SUFFIX) + ".hosts.json")
    if not name.endswith(SUFFIX) or not about.is_file():
        return None
    expected = "JSON with the lists machine_of and network_of"
    content = read_json(about, dict, expected)
    hosts = {True: content.get("machine_of"), False: content.get("network_of")}
    for names in hosts.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RawDataError(about, None, content, expected)
    return {of_machine: ", ".join(names or ()) for of_machine, names in hosts.items()}


def _columns(path: Path) -> dict[str, Any]:
    """Return the columns of table metrics by name; a constant column is a single value."""
    names = ("host", "at_utc", "interval_s", "subject", "metric", "unit", "value")
    columns: dict[str, Any] = {name: [] for name in names} | {"value": array("d")}
    document, hosts_of, subjects = _document(path), _hosts_of(path), set()
    hosts = document.list("hosts")
    if not hosts:
        document.refuse("sysstat without hosts", "one host, with its statistics")
    for host in hosts:
        hosts_by_place = hosts_of or dict.fromkeys((True, False), host.text("nodename"))
        for sample in host.list("statistics"):
            at_utc, interval_s = _time(sample.members("timestamp"))
            for of_machine, subject, is_mean, values in _entries(sample):
                subjects.add(subject)
                if len(subjects) > MOST_SUBJECTS:
                    sample.refuse(subject, WANTED_SUBJECTS)
                kind, n = subject.partition(" ")[0], len(values)
                about = (hosts_by_place[of_machine] or None, int(at_utc.timestamp()), interval_s if is_mean else None)
                for name, value in zip(names, (*about, subject), strict=False):
                    columns[name] += [value] * n
                columns["metric"] += values
                columns["unit"] += [_unit(kind, metric) for metric in values]
                columns["value"].extend(values.values())
            sample.values.clear()  # its memory is used again
    at_utc = pd.Series(np.array(columns["at_utc"], "M8[s]")).dt.tz_localize("UTC")
    return columns | {"value": np.asarray(columns["value"]), "at_utc": at_utc, "source": "sysstat", "cumulative": False}


def _entries(sample: Members) -> Iterator[tuple[bool, str, bool, dict[str, float]]]:
    """
    Yield each statistic of a sample: whether it describes the machine, its subject, whether it is a mean, its values.
    """
    found = dict(sample.values)
    for name in ("network", "power-management"):
        found |= sample.members(name).values
    for kind, (subject, naming, of_machine, is_mean) in KINDS.items():
        if kind not in found:
            continue
        held = sample.of(found)
        if isinstance(found[kind], list) and len(found[kind]) > MOST_SUBJECTS:
            sample.refuse(f"{len(found[kind]):,} in {kind}", WANTED_SUBJECTS)
        for entry in held.list(kind) if isinstance(found[kind], list) else [held.members(kind)]:
            which = [str(entry.values.get(naming))] if naming else []
            if naming and not isinstance(entry.values.get(naming), str | int):
                named = ", ".join(map(str, entry.values))
                entry.refuse(f"{entry.where} with {named}", f"the member {naming}, which names the device")
            values = {name: _number(entry, name, subject) for name in entry.values if name != naming}
            yield of_machine, " ".join([subject, *which]), is_mean, values


def _number(entry: Members, name: str, subject: str) -> float:
    value = entry.number(name, most=100 + ABOVE_100_PERCENT if subject == "cpu" else 1e18)
    if value is None:
        entry.refuse(f"{entry.where}.{name} = {entry.values[name]!r}", "a number")
    return value


def _time(stamp: Members) -> tuple[datetime, float | None]:
    # From 12.7.1 on tz is the zone's name. Only "UTC" is accepted, since sadf prints "GMT" in British summer, too.
    if stamp.values.get("utc") not in (1, True) and stamp.values.get("tz") != "UTC":
        stamp.refuse(f"{stamp.where}: {json.dumps(stamp.values)[:100]}", "a time in UTC (sadf without -t and -T)")
    text = f"{stamp.text('date')} {stamp.text('time')}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text, re.ASCII):
        stamp.refuse(f"{stamp.where}: {text}", "a date and a time such as 2026-11-21 17:39:51")
    try:
        at_utc = datetime.fromisoformat(f"{text}+00:00")
    except ValueError as error:
        stamp.refuse(f"{stamp.where}: {text}", str(error))
    interval_s = stamp.number("interval", unknown=0)
    return at_utc, interval_s if interval_s is None or interval_s <= LONGEST_INTERVAL_S else None


@cache
def _unit(kind: str, metric: str) -> str:
    return next((unit for of, name, unit in UNITS if of in ("", kind) and re.fullmatch(name, metric)), "")
