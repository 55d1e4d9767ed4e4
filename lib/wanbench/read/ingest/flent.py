"""
Read flent's data files (.flent, .flent.gz, .flent.bz2): RTTs into table pings, TCP and UDP flows into transfers.

Only raw values are read, not the sums and means that flent computes. A series in ms is a row of pings. Values of ping,
fping and irtt are single echoes, so the row has all statistics; values of netperf UDP_RR are means over intervals, so
the row has only the tool's overall mean. A series in Mbits/s of netperf or iperf is one transfer at the tool's mean
rate. A series without values becomes a row without values.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import File, Source
from .json_values import read_objects
from .rows import Row, fitting

SINGLE = ("PingRunner", "IrttRunner")
"""flent's runners that record one value per echo."""
DOWN = re.compile(r"download|\bdown\b", re.IGNORECASE)


def read(source: Source) -> dict[str, pd.DataFrame]:
    """
    Read tables pings and transfers; raise RawDataError if the file is not flent's or has no series of RTTs or rates.
    """
    top = read_objects(source, "a data file of flent, in JSON")[0]
    path, metadata, raw = top.path, top.values.get("metadata"), top.values.get("raw_values")
    about = metadata.get("SERIES_META") if isinstance(metadata, dict) else None
    valid = isinstance(about, dict) and all(isinstance(series, dict) for series in about.values())
    if not (isinstance(metadata, dict) and isinstance(raw, dict) and isinstance(about, dict) and valid):
        raise RawDataError(path, None, str(top.values)[:80], "flent's metadata with SERIES_META, and raw_values")
    rows: dict[str, list[Row]] = {"pings": [], "transfers": []}
    for name, series in about.items():
        values, unit = _values(path, name, raw.get(name, [])), series.get("UNITS")
        try:
            if "COMMAND" in series and unit == "ms":
                rows["pings"].append(_ping(series, values) | _start(metadata))
            elif "COMMAND" in series and unit == "Mbits/s":
                rows["transfers"].append(_transfer(name, series, values) | _start(metadata))
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RawDataError(path, None, f"{name}: {error}", "metadata as flent writes it") from None
    if not any(rows.values()):
        raise RawDataError(path, None, ", ".join(about)[:80] or "no series", "a series in ms or Mbits/s")
    return {name: fitting(path, name, found) for name, found in rows.items() if found}


def _values(path: File, name: str, raw: Any) -> np.ndarray:
    try:
        values = np.array([each["val"] for each in raw if each.get("val") is not None], dtype=float)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise RawDataError(path, None, f"raw_values of {name}: {error}", "objects with a number val") from None
    return values[np.isfinite(values)]


def _ping(series: dict[str, Any], values: np.ndarray) -> Row:
    """Return a row of table pings: statistics of single echoes, or only the tool's overall mean."""
    if not len(values):
        return {}
    if series.get("RUNNER") not in SINGLE:
        return {"mean_rtt_ms": series.get("MEAN_VALUE")}
    ranks = {"min": 0, "median": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
    row = {f"{name}_rtt_ms": float(np.percentile(values, rank)) for name, rank in ranks.items()}
    return row | {"mean_rtt_ms": float(values.mean()), "sd_rtt_ms": float(values.std())}


def _transfer(name: str, series: dict[str, Any], values: np.ndarray) -> Row:
    """Return a row of table transfers; its rate is the tool's own mean, or else the mean over the intervals."""
    command = series["COMMAND"]  # matched word by word, since a host's name must not decide the direction
    reverse = bool(DOWN.search(name) or "TCP_MAERTS" in command.split())
    mean = series.get("MEAN_VALUE")
    if mean is None and len(values):
        mean = float(values.mean())
    carried = series.get("BYTES_RECVD")
    retransmits = series.get("TCP_RETRANSMIT") if not reverse else None
    return {
        "direction": "reverse" if reverse else "forward",
        "protocol": "UDP" if re.search(r"UDP|\biperf\b.* -u\b", f"{name} {command}") else "TCP",
        "streams": 1,
        "duration_s": series.get("ELAPSED_TIME"),
        "bytes": int(carried) if carried else None,
        "throughput_bps": None if mean is None else 1e6 * mean,
        "retransmits": int(retransmits) if retransmits is not None else None,
        "mss_bytes": series.get("TCP_MSS") or None,
        "congestion_control": series.get("CONG_CONTROL"),
        "error": None if mean is not None else "no values",
    }


def _start(metadata: dict[str, Any]) -> Row:
    time = pd.to_datetime(metadata.get("T0") or metadata.get("TIME"), errors="coerce", utc=True)
    return {"started_at_utc": None if pd.isna(time) else time}
