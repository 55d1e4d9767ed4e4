"""
Read mtr's report (-r) or JSON (-j) into table pings: one row for the last hop, which is the target.

`from_region` is the host that ran mtr, and `to_region` the target; a report does not name the target, so its last hop
is used. A target that never answered ("???") has no RTTs. Other hops are ignored, because routers delay their own
answers.
"""

import re
from collections.abc import Mapping
from datetime import datetime

import pandas as pd

from wanbench.errors import RawDataError

from .content import File, Source, read_text
from .json_values import LARGEST_BYTES, read_objects
from .kafka_load.lines import lines_of
from .rows import Row, fitting

WANTED = "mtr's report (mtr -r) or JSON (mtr -j)"
HEADING = re.compile(r"\s*HOST: (?P<host>\S+)\s+(?P<columns>Loss%.*)")
HOP = re.compile(r"\s*[0-9]{1,3}\.(?:\|--)?\s")
RTTS = {"min_rtt_ms": "Best", "mean_rtt_ms": "Avg", "max_rtt_ms": "Wrst", "sd_rtt_ms": "StDev"}


def read(source: Source) -> dict[str, pd.DataFrame]:
    """Read table pings, with regions; raise RawDataError if there is no report with a hop, or a hop cannot be read."""
    path, text = read_text(source, most_bytes=LARGEST_BYTES)
    rows = _of_json(source) if text.lstrip()[:1] in ("{", "[") else _of_report(path, text)
    if not rows:
        raise RawDataError(path, None, text.strip()[:80] or "an empty file", WANTED)
    regions = {name: [row.pop(name) for row in rows] for name in ("from_region", "to_region")}
    return {"pings": fitting(path, "pings", rows).assign(**regions)}


def _of_json(source: Source) -> list[Row]:
    rows = []
    for top in read_objects(source, WANTED):
        report = top.members("report")
        about, hubs = report.members("mtr"), report.list("hubs")
        if not hubs:
            top.refuse(", ".join(map(str, top.values)), f"{WANTED} with report.hubs")
        last = {name: hubs[-1].number(name) for name in ("Loss%", "Snt", *RTTS.values())}
        rows.append(_row(top.path, None, hubs[-1].text("host"), last))
        rows[-1] |= {"from_region": about.text("src"), "to_region": about.text("dst")}
    return rows


def _of_report(path: File, text: str) -> list[Row]:
    rows, started, columns, host = [], None, None, None
    for number, line, *_ in lines_of(path, text):
        if line.startswith("Start: "):
            started = _time(line.removeprefix("Start: ").strip())
        elif heading := HEADING.match(line):
            columns, host = heading["columns"].split(), heading["host"]
            rows.append({})
        elif columns and HOP.match(line):
            words = line.split()
            try:
                hop, figures = words[-len(columns) - 1], words[-len(columns) :]
                values = {name: float(word.rstrip("%")) for name, word in zip(columns, figures, strict=True)}
            except (ValueError, IndexError):
                raise RawDataError(path, number, line, f"a hop with {' '.join(columns)}") from None
            reached = None if hop == "???" else hop.strip("()")
            rows[-1] = _row(path, number, hop, values)
            rows[-1] |= {"from_region": host, "to_region": reached, "started_at_utc": started}
    return [row for row in rows if row]


def _row(path: File, line_number: int | None, hop: str | None, values: Mapping[str, float | None]) -> Row:
    sent, loss = values.get("Snt"), values.get("Loss%")
    if sent is None or loss is None or not (0 <= sent < 2**53 and 0 <= loss <= 100):
        raise RawDataError(path, line_number, f"Snt {sent}, Loss% {loss}", "echoes sent, and a loss of 0 to 100 %")
    row = {"n_sent": sent, "n_lost": round(sent * loss / 100)}
    is_silent = hop == "???" or row["n_lost"] == sent
    return row if is_silent else row | {name: values.get(column) for name, column in RTTS.items()}


def _time(text: str) -> datetime | None:
    """Parse a time; return None if it has no time zone, as in old versions."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None
