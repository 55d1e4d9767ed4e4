"""Tables of two systems at steps of rate and partitions, simulated with a known answer."""

import numpy as np
import pandas as pd
from latency_samples import encoded

from wanbench import tables

START_S, SECONDS, WARM_UP = 1_800_000_000, 6, 2
NAMES = ("plain", "near")
CAPACITY = {"plain": 2000.0, "near": 3000.0}
LINK_BPS = 36e6
ZONES = ("a:west", "b:east", "c:north")


def latency_ms(system, rate, partitions):
    """Median latency: 10 ms, for `near` 15 ms; more beyond a system's capacity, and by 0.1 ms per partition."""
    base = 10.0 * (1.5 if system == "near" else 1.0) + 0.1 * (partitions - 6)
    return base * max(rate / CAPACITY[system], 1.0) ** 6


def trial(ordinal, system, rate, partitions, block, rng, **changes):
    """Rows by table of one trial; `changes` go over the row of open_loop_loads."""
    test_id, start_s = f"{ordinal:04d}-a.west-b.east", START_S + 60.0 * ordinal
    about = {"run_id": "run", "test_id": test_id, "attempt": 1, "from_region": ZONES[0], "to_region": ZONES[1]}
    own = {key: about[key] for key in ("run_id", "test_id", "from_region", "to_region")}
    setting = f"{system}, {rate:g}/s, {partitions}"
    kept = min(rate, CAPACITY[system])
    load = {
        **about, "source_file": "x", "rate_records_per_s": rate, "sent_records_per_s": rate,
        "acknowledged_records_per_s": kept, "received_records_per_s": kept, "record_bytes": 2048, "payload": "random",
        "topics": 1, "partitions": partitions, "replication": 3, "producers": 1, "groups": 1, "consumers": 1,
        "acks": "all", "linger_ms": 10.0, "batch_bytes": 16384, "compression": "none", "idempotence": True,
        "start_s": start_s, "warmup_s": float(WARM_UP), "duration_s": float(SECONDS - WARM_UP),
        "n_intended": int(rate * SECONDS), "n_sent": int(rate * SECONDS), "n_acknowledged": int(rate * SECONDS),
        "n_failed": 0, "n_received_per_group_min": int(rate * SECONDS), "n_duplicates": 0, "late_p99_ms": 1.0,
        "late_max_ms": 2.0, "blocked_s": 0.0, "backlog_records": 0, "fell_behind": False, "clock_offset_ms": 0.0,
        "clock_error_ms": 0.0, "clock_method": "one machine, one clock",
    } | changes  # fmt: skip
    slow = rng.normal(0, 0.02)
    windows = []
    for second in range(SECONDS):
        values = latency_ms(system, rate, partitions) * np.exp(slow + rng.normal(0, 0.25, int(rate)))
        for what, group in (("end to end", 0), ("publish", None)):
            windows.append(
                {
                    **about, "source_file": "x", "what": what, "group": group, "window": second,
                    "start_s": start_s + second, "length_s": 1.0, "warm_up": second < WARM_UP, "n": len(values),
                    "n_lost": 0, "n_negative": 0, "fell_behind": bool(load["fell_behind"]), "clock_error_ms": 0.0,
                    "unit": "us", "histogram": encoded(values * 1000),
                }
            )  # fmt: skip
    used = kept * LINK_BPS / 8 / 2000
    crossing = {("a:west", "b:east"): 1.0 if system == "plain" else 2 / 3, ("b:east", "a:west"): 0.5}
    samples = [
        {
            **about, "source_file": "x", "link_from": start, "link_to": end, "at_s": start_s + second,
            "rate_bps": LINK_BPS, "packets_sent": second * 1000, "packets_delivered": second * 1000,
            "packets_lost": 0, "packets_queue_dropped": 0, "bytes_sent": int(second * used * share),
            "bytes_delivered": int(second * used * share), "bytes_lost": 0, "bytes_backlog": 0,
        }
        for (start, end), share in crossing.items()
        for second in range(SECONDS + 1)
    ]  # fmt: skip
    return {
        "trials": [
            own
            | {"block": block, "setting": setting, "system": system, "partitions": partitions}
            | {"target_records_per_s": rate}
        ],
        "tests": [
            {**about, "outcome": "done", "setting": setting}
            | {"started_at_utc": pd.Timestamp(start_s, unit="s", tz="UTC")}
        ],
        "open_loop_loads": [load],
        "open_loop_histograms": windows,
        "link_samples": samples,
    }


def campaign(rates=(500, 1500, 2500, 4000), more_partitions=(60,), at_rate=1500, blocks=3, seed=0, changes=None):
    """
    Tables of both systems at each step, each once in every block; `changes` has those of single trials by ordinal.
    """
    rng, rows, ordinal = np.random.default_rng(seed), {}, 0
    steps = [(float(rate), 6) for rate in rates] + [(float(at_rate), each) for each in more_partitions]
    for block in range(1, blocks + 1):
        for rate, partitions in steps:
            for system in NAMES:
                ordinal += 1
                more = (changes or {}).get(ordinal, {})
                for name, own in trial(ordinal, system, rate, partitions, block, rng, **more).items():
                    rows.setdefault(name, []).extend(own)
    return {name: made(name, own) for name, own in rows.items()}


def made(name, rows):
    """A valid table; columns that it does not have are left out."""
    allowed = set(tables.table(name).names)
    return tables.from_rows(name, [{key: value for key, value in row.items() if key in allowed} for row in rows])
