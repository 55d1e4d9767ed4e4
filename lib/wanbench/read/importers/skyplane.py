"""
Read the latency and throughput grids of Skyplane (formerly Skylark) between regions of AWS, Azure and Google Cloud.

Each row is a test between two virtual machines: ping (min, avg, max, mdev in ms), or iperf3 with parallel connections
(bit/s). Network tiers and machines of both ends become the setting, such as "STANDARD n2-standard-4 to PREMIUM
m5.large". Zones of Google Cloud are replaced by their regions.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .assemble import finished, measured
from .intercloud import setting
from .originals import About
from .sheet import Sheet, read_csv

ENDS = ("src_region", "dst_region")
LATENCY = ("min_rtt", "avg_rtt", "max_rtt", "mdev_rtt")
SENT = "throughput_sent"
RECEIVED = ("throughput_received", "throughput_recieved")  # misspelt in older files
REGION = r"[a-z]+:[a-z0-9]+(?:-[a-z0-9]+)*"
ZONE = r"^(gcp:.+[0-9])-[a-z]$"
RUN = r"^.*/throughput_grid/([^/]+)/.*$"


def read_skyplane(path: str | Path, *, about: About = None) -> dict[str, pd.DataFrame]:
    """
    Read a grid of latencies or throughputs into tables tests, sources, unread, flags, and pings or transfers.

    `path` is profiles/latency.csv or profiles/throughput.csv of Skyplane; the columns show which. `about` has title,
    address, version and licence of the file; they are known for the files that `original_files.csv` lists. A row of the
    throughput grid without success is a failed test, and its transfer has an error. `run_id` is the batch of the
    measurement if the path of the raw output names it, or else the file's name. The grids have no start
    times. Both grids were measured on machines of different sizes.

    Raise RawDataError, which names the expected columns, if the columns are those of neither grid, or if no row can be
    read. Single rows that cannot be read are listed in table unread.
    """
    sheet = read_csv(path, about=about)
    sheet.need(*ENDS)
    regions = [sheet.matching(end, REGION, "a region, such as aws:us-east-1").map(region_of) for end in ENDS]
    ends = [(sheet.text(f"{at}_tier") + " " + sheet.text(f"{at}_instance_class")).str.strip() for at in ("src", "dst")]
    test = {"from_region": regions[0].astype("str"), "to_region": regions[1].astype("str")}
    if sheet.first(*LATENCY):
        kind, columns, done, reason = _pings(sheet)
        rows = done
    elif sheet.first(SENT, *RECEIVED):
        paths = sheet.text("stdout_path")  # the batch is a folder in the path of the raw output
        batches = paths.str.replace(RUN, r"\1", regex=True)
        test["run_id"] = batches.where(paths.str.match(RUN), Path(sheet.path).name)
        kind, columns, done, reason = _transfers(sheet)
        rows = np.ones(len(sheet), bool)
    else:
        found = f"columns {', '.join(sheet.names)}"
        raise RawDataError(path, sheet.header_line, found, f"{', '.join(LATENCY)}; or {SENT}, {RECEIVED[0]}, success")
    outcome = {"setting": setting(*ends), "done": done.to_numpy(), "reason": reason}
    return finished(measured(sheet, test, outcome, {kind: (columns, rows)}))


def region_of(name: str) -> str:
    """
    Return the region with this name or, if the name is that of a Google Cloud zone, the zone's region.

    >>> region_of("gcp:europe-west6-a"), region_of("aws:us-east-1"), region_of("azure:westus")
    ('gcp:europe-west6', 'aws:us-east-1', 'azure:westus')
    """
    return re.sub(ZONE, r"\1", name)


def _pings(sheet: Sheet):
    sheet.need(*LATENCY[:3])
    minimum, mean, maximum, sd = (sheet.number(sheet.first(name)) for name in LATENCY)
    replied = minimum.notna() | mean.notna() | maximum.notna()
    pings = {"min_rtt_ms": minimum, "mean_rtt_ms": mean, "max_rtt_ms": maximum, "sd_rtt_ms": sd}
    return "pings", pings, replied, "no RTT"


def _transfers(sheet: Sheet):
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
    return "transfers", transfers, success & received.notna(), "no success, or no throughput"
