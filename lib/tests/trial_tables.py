"""Tables of simulated trials, as the readers would make them of a run folder, with a known answer."""

import numpy as np
import pandas as pd

from wanbench import tables

START_S = 1_800_000_000
FROM, TO = "a:west", "b:east"


def context(test_id, attempt=1, run_id="run", source_file="x"):
    return {
        "run_id": run_id, "test_id": test_id, "attempt": attempt, "from_region": FROM, "to_region": TO,
        "source_file": source_file,
    }  # fmt: skip


def trial(
    ordinal,
    setting,
    batches_per_s,
    *,
    block=1,
    seconds=12,
    producers=3,
    warmup_s=3,
    rng=None,
    outcome="done",
    attempt=1,
    rtt_ms=62.5,
    rate_bps=1e8,
    log=True,
    lines=True,
    shares=None,
    run_id="run",
    **levels,
):
    """
    Rows by table of one trial: producer k starts k / 2 s after the first and all run for warm-up and `seconds`.

    In each second of the log there are `batches_per_s` batches of 15 records of 1,000 bytes, over two partitions; in
    the first second of the warm-up half.
    """
    test_id, began = f"{ordinal:04d}-{FROM}-{TO}".replace(":", "."), START_S + 100 * ordinal
    about = context(test_id, attempt, run_id)
    levels = {"delay_ms": rtt_ms / 2, "rate_bps": rate_bps, "acks": "all", "batch_bytes": 16_384} | levels
    rows = {
        "trials": [
            {key: about[key] for key in ("run_id", "test_id", "from_region", "to_region")}
            | {"block": block, "setting": setting, "producers": producers, "record_bytes": 1000}
            | {"partitions": 2, "topics": 1, "replication": 1, "duration_s": seconds}
            | levels
        ],
        "tests": [
            {key: about[key] for key in ("run_id", "test_id", "attempt", "from_region", "to_region")}
            | {"outcome": outcome, "setting": setting, "started_at_utc": pd.Timestamp(began, unit="s", tz="UTC")}
        ],
    }  # fmt: skip
    if outcome != "done":
        return rows
    last = began + (producers - 1) / 2 + warmup_s + seconds
    rows["producers"] = [
        about
        | {"producer": k, "records": 15 * batches_per_s * seconds // producers, "warmup": False, "n_errors": 0}
        | {"records_per_s": 15 * batches_per_s / producers, "mean_latency_ms": 70.0 + k, "max_latency_ms": 90.0 + k}
        for k in range(producers)
    ]  # fmt: skip
    if lines:
        rows["producer_windows"] = [
            about
            | {"producer": k, "window": s, "printed_at_s": began + k / 2 + s + 1.0, "length_s": 1.0}
            | {"records": round(15 * batches_per_s * (shares[k] if shares else 1 / producers))}
            | {"records_per_s": 5.0 * batches_per_s, "throughput_bps": 4e4 * batches_per_s, "warmup": s < warmup_s}
            | {"mean_latency_ms": 70.0 + k, "max_latency_ms": 90.0 + k}
            for k in range(producers)
            for s in range(warmup_s + seconds)
        ]
    if log:
        rows["batches"] = []
        for at_s in range(began, int(np.ceil(last)) + 1):
            level = batches_per_s / 2 if at_s == began else batches_per_s
            n = round(level + (rng.normal(0, 0.05 * level) if rng is not None else 0))
            for partition, each in enumerate((n // 2, n - n // 2)):
                rows["batches"].append(
                    about
                    | {"broker": 1, "topic": "t", "partition": partition, "at_s": at_s, "batches": each}
                    | {"records": 15 * each, "bytes": 15_500 * each}
                )
    rtts = rtt_ms + (rng.normal(0, 1, 40) if rng is not None else np.tile([-1.0, 1.0], 20))
    rows["echoes"] = [
        about | {"sequence": k, "rtt_ms": rtt, "lost": False, "duplicate": False, "received_at_s": began + k / 3}
        for k, rtt in enumerate(rtts)
    ]
    rows["transfers"] = [
        about
        | {"direction": "forward", "protocol": "UDP", "duration_s": 15.0, "throughput_bps": 0.8 * rate_bps}
        | {"packets": 15_000, "block_bytes": round(0.1 * rate_bps / 1000)}
    ]
    rows["link_samples"] = [
        about
        | {"at_s": began + s, "link_from": one, "link_to": other, "rate_bps": rate_bps, "packets_sent": k * s}
        | {"packets_delivered": k * s, "bytes_delivered": 1000 * k * s, "bytes_sent": 1000 * k * s}
        for one, other, k in ((FROM, TO, 10_000), (TO, FROM, 2_000))
        for s in reversed(range(18))  # a table has no order
    ]
    return rows


CONTEXT = tuple(context(""))
NAMES = (
    "trials", "tests", "loads", "producers", "producer_windows", "batches", "echoes", "transfers", "intervals",
    "link_samples",
)  # fmt: skip


def together(trials):
    """Valid tables out of the rows of several trials."""
    found = {name: [row for each in trials for row in each.get(name, ())] for name in NAMES}
    counters = {each.name: 0 for each in tables.table("link_samples").columns if each.name.startswith("packets_")}
    found["link_samples"] = [counters | row for row in found["link_samples"]]
    return {name: tables.from_rows(name, rows) for name, rows in found.items()}
