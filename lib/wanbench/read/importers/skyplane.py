"""
The latency and throughput grids of Skyplane (earlier Skylark), region to region over AWS, Azure, Google Cloud.

A row is one test between two virtual machines: ping (min, avg, max, mdev in ms), or iperf3 with parallel
connections (bit/s). Machine and network tier of both ends become the setting, "STANDARD n2-standard-4 to PREMIUM
m5.large"; Google Cloud's zones become their regions.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError

from .assemble import finished, table_of
from .intercloud import setting
from .sheet import read_csv

ENDS = ("src_region", "dst_region")
LATENCY = ("min_rtt", "avg_rtt", "max_rtt", "mdev_rtt")
SENT = "throughput_sent"
RECEIVED = ("throughput_received", "throughput_recieved")  # the older files' spelling
REGION = r"[a-z]+:[a-z0-9]+(?:-[a-z0-9]+)*"
ZONE = r"^(gcp:.+[0-9])-[a-z]$"
RUN = r"^.*/throughput_grid/([^/]+)/.*$"


def read_skyplane(path, *, about=None) -> dict[str, pd.DataFrame]:
    """
    Tables of one grid, which its columns identify: tests, sources, unread, flags, and pings or transfers.

    A row of the throughput grid without success is a failed test whose transfer has an error. `run_id` is the batch in
    which the grid was measured where the path of the raw output names it, else the file's name. The grids do not hold
    start times. `join` combines both grids; they used machines of different sizes.

    Parameters
    ----------
    path : path
        profiles/latency.csv or profiles/throughput.csv.
    about : mapping, optional
        title, address, version, licence; known for the files in `importers.original_files()`.

    Raises
    ------
    RawDataError
        If the columns fit neither grid (the error names them and those expected), or no row can be read. Single rows
        that cannot be read are rows of unread.
    """
    sheet = read_csv(path, about=about)
    sheet.need(*ENDS)
    regions = [sheet.matching(end, REGION, "a region, such as aws:us-east-1").map(region_of) for end in ENDS]
    ends = []
    for end in ("src", "dst"):
        parts = sheet.text(f"{end}_tier") + " " + sheet.text(f"{end}_instance_class")
        ends.append(parts.str.strip())
    name = Path(sheet.path).name
    test = {
        "run_id": name,
        "test_id": name + ":" + pd.Series(sheet.lines).astype("str"),
        "attempt": 1,
        "from_region": regions[0].astype("str"),
        "to_region": regions[1].astype("str"),
        "setting": setting(*ends),
    }
    if sheet.first(*LATENCY):
        outcome, measured = _pings(sheet)
    elif sheet.first(SENT, *RECEIVED):
        test["run_id"] = _batches(sheet, name)
        outcome, measured = _transfers(sheet)
    else:
        found = f"columns {', '.join(sheet.names)}"
        raise RawDataError(path, sheet.header_line, found, f"{', '.join(LATENCY)}; or {SENT}, {RECEIVED[0]}, success")
    unread = sheet.unread()
    file = {"source_file": sheet.path}
    grid = {
        "tests": table_of("tests", test | outcome, sheet.good),
        "sources": tables.from_rows("sources", [sheet.source]),
        "unread": tables.from_rows("unread", unread),
    }
    for kind, columns in measured.items():
        rows = columns.pop("rows", True) & sheet.good
        context = {name: values for name, values in test.items() if name != "setting"}
        grid[kind] = table_of(kind, context | file | columns, rows)
    return finished(grid)


def region_of(name: str) -> str:
    """
    The region of a name, which may be the name of a zone.

    >>> region_of("gcp:europe-west6-a"), region_of("aws:us-east-1"), region_of("azure:westus")
    ('gcp:europe-west6', 'aws:us-east-1', 'azure:westus')
    """
    return re.sub(ZONE, r"\1", name)


def _pings(sheet):
    sheet.need(*LATENCY[:3])
    minimum, mean, maximum, sd = (sheet.number(sheet.first(name)) for name in LATENCY)
    replied = minimum.notna() | mean.notna() | maximum.notna()
    pings = {"min_rtt_ms": minimum, "mean_rtt_ms": mean, "max_rtt_ms": maximum, "sd_rtt_ms": sd}
    pings |= {"rows": replied.to_numpy()}
    return _outcome(replied, "no RTT"), {"pings": pings}


def _transfers(sheet):
    sheet.need(SENT, RECEIVED, "success")
    status = sheet.matching("success", "(?i)true|false|1|0|", "True or False").str.lower()
    success = status.isin(["true", "1"])
    received = sheet.number(sheet.first(*RECEIVED))
    sent = sheet.number(SENT)
    error = pd.Series("the grid reports no success", index=status.index, dtype="str").where(~success)
    transfers = {
        "direction": "forward",
        "protocol": "TCP",
        "streams": sheet.number(sheet.first("iperf3_connections"), minimum=1, whole=True),
        "duration_s": sheet.number(sheet.first("iperf3_runtime")),
        "throughput_bps": received,
        "sent_throughput_bps": sent,
        "cpu_local_percent": sheet.number(sheet.first("cpu_utilization")),
        "error": error,
    }
    return _outcome(success & received.notna(), "no success, or no throughput"), {"transfers": transfers}


def _outcome(done, reason):
    texts = pd.Series(reason, index=done.index, dtype="str")
    return {"outcome": pd.Series(np.where(done, "done", "failed"), dtype="str"), "reason": texts.where(~done)}


def _batches(sheet, name):
    """The names of batches, folders in the paths of the raw output; `name` where there is none."""
    paths = sheet.text("stdout_path")
    return paths.str.replace(RUN, r"\1", regex=True).where(paths.str.match(RUN), name)
