"""
Reads what `sadf -j` printed, sysstat 10.1 to 12.7.9: rows of table metrics. Imports nothing that measures.

- Metrics are called as sysstat calls them in that version ("usr" or "user", "rxkB"); what sysstat calls kB are 1,024
  bytes, so the unit says KiB.
- Processors, disks and network are means over the sample's interval; memory and load hold at its end.
- Kinds of statistics that have no line in `KINDS` are passed over; a known one must be of the known shape.
- Times must be in UTC, as sadf prints them unless told otherwise; they are whole seconds.
- A file <name>.hosts.json beside <name>.sadf.json says for which hosts it speaks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pandas as pd

from .. import tables
from ..errors import ParameterError, RawDataError
from ..tables import CONTEXT
from .content import read_text
from .iperf3_members import Members

SUFFIX = ".sadf.json"
LARGEST_BYTES = 512 * 2**20
COLUMNS = tuple(column for column in tables.table("metrics").columns if column not in CONTEXT)
LONGEST_INTERVAL_S = 1e6
"""sysstat 10 printed a huge number as the interval of the first sample; that is none."""
ABOVE_100_PERCENT = 1.0
"""How far above 100 a share of a processor may come by rounding."""

KINDS = {
    # key in the file: (subject, the member that names which one, of the machine rather than the network?, a mean?)
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
    # (subject, pattern of the metric's name, unit); the first that fits counts
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


def read(path) -> dict[str, pd.DataFrame]:
    """
    The metrics in a file of `sadf -j`, without context.

    RawDataError says what is no JSON (and where), of the wrong type, impossible, or not in UTC.
    """
    path = Path(path)
    rows = list(_rows(path, _document(path), _speaks_for(path)))
    data = {c.name: pd.Series([row.get(c.name) for row in rows], dtype=object) for c in COLUMNS}
    try:
        return {"metrics": pd.DataFrame({c.name: c.check(data[c.name], "metrics") for c in COLUMNS})}
    except ParameterError as error:
        raise RawDataError(path, None, error, "values that table metrics allows") from None


READS = {SUFFIX: read}


def _document(path: Path) -> Members:
    _, text = read_text(path, most_bytes=LARGEST_BYTES)
    try:
        content = json.loads(text, parse_constant=float)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        line = lines[error.lineno - 1].strip() if error.lineno <= len(lines) else "the end"
        expected = f"JSON of sadf -j, whole and with decimal points (LC_ALL=C): {error.msg}"
        raise RawDataError(path, error.lineno, line, expected) from None
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, "JSON of sadf -j") from None
    if not isinstance(content, dict) or not isinstance(content.get("sysstat"), dict):
        raise RawDataError(
            path, None, str(content)[:200], 'a JSON object with "sysstat", as sadf -j prints it'
        )
    return Members(path, None, content["sysstat"], "sysstat")


def _speaks_for(path: Path) -> dict[bool, str] | None:
    """The hosts of the machine (True) and of the network (False); None if nobody wrote them down."""
    about = path.with_name(path.name.removesuffix(SUFFIX) + ".hosts.json")
    if not path.name.endswith(SUFFIX) or not about.is_file():
        return None
    try:
        content = json.loads(about.read_bytes())
        said = {of: content[name] for of, name in ((True, "machine_of"), (False, "network_of"))}
        if not all(isinstance(host, str) for hosts in said.values() for host in hosts):
            raise TypeError("a host's name that is no text")
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise RawDataError(about, None, error, "JSON with the lists machine_of and network_of") from None
    return {of: ", ".join(hosts) for of, hosts in said.items()}


def _rows(path: Path, document: Members, speaks_for: dict[bool, str] | None) -> Iterator[dict]:
    hosts = document.list("hosts")
    if not hosts:
        document.refuse("sysstat without hosts", "one host, with its statistics")
    for host in hosts:
        said = speaks_for or dict.fromkeys((True, False), host.text("nodename"))
        for sample in host.list("statistics"):
            at_utc, interval_s = _time(sample.members("timestamp"))
            for of_machine, subject, is_mean, values in _entries(sample):
                about = {
                    "source": "sysstat",
                    "host": said[of_machine] or None,
                    "at_utc": at_utc,
                    "interval_s": interval_s if is_mean else None,
                    "subject": subject,
                    "cumulative": False,
                }
                for metric, value in values.items():
                    yield about | {"metric": metric, "value": value, "unit": _unit(subject, metric)}


def _entries(sample: Members) -> Iterator[tuple[bool, str, bool, dict[str, float]]]:
    """Every object of numbers in a sample: of the machine?, what it is about, a mean?, the numbers."""
    found = dict(sample.values)
    for name in ("network", "power-management"):
        found |= sample.members(name).values
    for kind, (subject, naming, of_machine, is_mean) in KINDS.items():
        if kind not in found:
            continue
        held = sample.of(found)
        for entry in held.list(kind) if isinstance(found[kind], list) else [held.members(kind)]:
            which = [str(entry.values.get(naming))] if naming else []
            if naming and not isinstance(entry.values.get(naming), str | int):
                entry.refuse(
                    f"{entry.where} with {', '.join(map(str, entry.values))}", f"{naming}, which one it is of"
                )
            values = {name: _number(entry, name, subject) for name in entry.values if name != naming}
            yield of_machine, " ".join([subject, *which]), is_mean, values


def _number(entry: Members, name: str, subject: str) -> float:
    most = 100 + ABOVE_100_PERCENT if subject == "cpu" else 1e18
    value = entry.number(name, most=most)
    if value is None:
        entry.refuse(f"{entry.where}.{name} = {entry.values[name]!r}", "a number")
    return value


def _time(stamp: Members) -> tuple[datetime, float | None]:
    day, hour = stamp.text("date"), stamp.text("time")
    # From 12.7.1 on: the name of the zone. No other name will do: sadf prints "GMT" in British summer, too.
    if stamp.values.get("utc") not in (1, True) and stamp.values.get("tz") != "UTC":
        stamp.refuse(
            f"{stamp.where}: {json.dumps(stamp.values)[:100]}", "a time in UTC (sadf without -t and -T)"
        )
    text = f"{day}T{hour}+00:00"
    if (
        day is None
        or hour is None
        or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", text, re.ASCII)
    ):
        stamp.refuse(f"{stamp.where}: {day} {hour}", "a date and a time such as 2026-11-21 17:39:51")
    try:
        at_utc = datetime.fromisoformat(text)
    except ValueError as error:
        stamp.refuse(f"{stamp.where}: {text}", str(error))
    interval_s = stamp.number("interval", unknown=0)
    return at_utc, interval_s if interval_s is None or interval_s <= LONGEST_INTERVAL_S else None


def _unit(subject: str, metric: str) -> str:
    kind = subject.partition(" ")[0]
    return next((unit for of, name, unit in UNITS if of in ("", kind) and re.fullmatch(name, metric)), "")
