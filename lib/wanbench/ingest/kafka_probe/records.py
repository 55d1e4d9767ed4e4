"""
The records of a probe as tables probes, probe_records and histograms.

Latency is receipt less intended send time, less the offset between the clocks.

- Every due send time is a row, whatever happened to the record. A record received by several groups or
  several times is a row for each receipt, in the order in which the group's program printed them.
- A damaged record is identified by the acknowledgement of its partition and offset. Without one, the record is counted
but has no row.
- A latency below zero or below the uncertainty of the clocks stays; it is marked and counted.
- A broker processes a connection's requests one by one. A record that was sent before the previous one on its
connection was answered is marked as queued: the probe's own rate made it wait.
- A probe that did not start is a row that says why, without records.
- Without an offset between the clocks the latency is null.
- A killed program may leave a truncated line: the lines before it are read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..rows import fitting
from .files import Programs, open_probe
from .histograms import histograms


def read(path) -> dict[str, pd.DataFrame]:
    """
    Tables probes, probe_records and histograms of one probe, without their context.

    RawDataError names the invalid file, and the line if possible.
    """
    path = Path(path)
    about = open_probe(path)
    programs = Programs.open(path, about)
    records = _records(programs, about)
    data = {
        "probes": _probe(records, programs, about),
        "probe_records": [] if records.empty else records,
        "histograms": histograms(records),
    }
    return {name: fitting(path, name, rows) for name, rows in data.items()}


def _records(programs: Programs, about) -> pd.DataFrame:
    """A row per receipt, and one per record that was not received."""
    sent = programs.sent()
    sent["queued"] = _queued(sent, about)
    receipts = programs.receipts()
    receipts = receipts[receipts.sequence.notna()].astype({"sequence": "int64"})
    receipts["duplicate"] = receipts.duplicated(["group", "sequence"])
    rows = sent.merge(receipts, how="left", on="sequence", sort=False, suffixes=("", "_read"))
    rows = rows.sort_values(["sequence", "group"], kind="stable").reset_index(drop=True)
    error_ms = about.error_ms
    elapsed = rows.received_ns - rows.intended_ns
    latency = elapsed.astype("float64") / 1e6 - (np.nan if about.offset_ms is None else about.offset_ms)
    limited = (latency < 0) | (latency.abs() < error_ms if error_ms is not None else False)
    return pd.DataFrame(
        {
            "sequence": rows.sequence,
            "group": rows.group,
            "partition": rows.partition,
            "offset": rows.offset,
            "intended_at_s": rows.intended_ns / 1e9,
            "sent_at_s": rows.sent_ns / 1e9,
            "acknowledged_at_s": rows.acknowledged_ns / 1e9,
            "received_at_s": rows.received_ns / 1e9,
            "latency_ms": latency,
            "publish_latency_ms": (rows.acknowledged_ns - rows.intended_ns).astype("Float64") / 1e6,
            "queued": rows.queued,
            "clock_limited": limited.fillna(False).astype(bool),
            "duplicate": rows.duplicate.fillna(False).astype(bool),
            "damaged": rows.damaged.fillna(False).astype(bool),
            "error": rows.error,
        }
    )


def _queued(sent: pd.DataFrame, about) -> pd.Series:
    """Whether a record was sent before the previous one on its connection was answered; null: unknown."""
    if about.producers is None:
        return pd.Series(pd.NA, index=sent.index, dtype="boolean")
    leaders = np.array([-1 if leader is None else leader for leader in about.leaders] or [-1])
    producer, leader = sent.sequence % about.producers, leaders[sent.sequence % len(leaders)]
    ahead = sent[sent.sent_ns.notna()].sort_values("sent_ns", kind="stable")
    connection = [producer.loc[ahead.index], pd.Series(leader, sent.index).loc[ahead.index]]
    groups = ahead.groupby(connection)
    waited = (groups.answered_ns.shift() > ahead.sent_ns) | groups.answered_ns.shift().isna()
    return (waited & (groups.cumcount() > 0)).reindex(sent.index, fill_value=False).astype("boolean")


def _probe(records: pd.DataFrame, programs: Programs, about) -> list[dict]:
    once = records.drop_duplicates("sequence")
    first_group = records[records.group == 0]
    acknowledged = once[once.acknowledged_at_s.notna()]
    row = {
        "interval_s": programs.interval_ns / 1e9,
        "record_bytes": about.record_bytes,
        "n_intended": len(once),
        "n_sent": int(once.sent_at_s.notna().sum()),
        "n_acknowledged": len(acknowledged),
        "n_received": first_group.sequence.nunique(),
        "n_missing": int((~acknowledged.sequence.isin(first_group.sequence)).sum()),
        "n_queued": once.queued.sum() if once.queued.notna().all() else None,
        "n_duplicates": int(records.duplicate.sum()),
        "n_damaged": programs.n_damaged,
        "n_negative": int((records.latency_ms < 0).sum()),
        "n_clock_limited": int(records.clock_limited.sum()),
        "clock_offset_ms": about.offset_ms,
        "clock_error_ms": about.error_ms,
        "clock_method": about.method,
        "error": about.not_started,
    }
    return [row]
