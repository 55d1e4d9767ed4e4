"""Trials of one Kafka over three regions, simulated with a known answer: rates as `trial_rates` would give them."""

import json

import numpy as np
import pandas as pd

from wanbench.methods.trials.rates import TrialRates

BASE = {
    "delay_ms": None, "topics": 1, "partitions": 9, "replication": 3, "producers": 3, "consumer_groups": 1,
    "consumers": 3, "acks": "all", "min_insync": 2, "batch_bytes": 65_536, "linger_ms": 50.0, "compression": "none",
    "payload": "letters", "record_bytes": 1000, "client_rack": None, "client_send_buffer_bytes": -1, "max_in_flight": 5,
    "client_receive_buffer_bytes": -1, "broker_settings": "", "security": "plain", "gateway_bps": None,
    "client_regions": 3, "target_records_per_s": None,
}  # fmt: skip
"""The settings of the baseline, as table trials holds them."""


def trial(setting, bps, *, block=1, packed=1.0, **changes):
    """One row of rates: `bps` of payload, a `packed`-th of it in the log, at the baseline but for the changes."""
    if isinstance(changes.get("broker_settings"), dict):
        changes["broker_settings"] = json.dumps(changes["broker_settings"], sort_keys=True)
    records = bps / 8 / 1000
    return BASE | changes | {
        "setting": setting, "block": block, "throughput_bps": bps, "records_per_s": records,
        "log_bytes_per_s": records * 1000 / packed, "batches_per_s": records / 60,
        "n_seconds": 10, "start_s": 1000.0, "end_s": 1010.0,
    }  # fmt: skip


def rates(trials):
    """The trials as `TrialRates`."""
    frame = pd.DataFrame(trials)
    frame["run_id"], frame["attempt"] = "run", 1
    frame["test_id"] = [f"{n:04d}" for n in range(1, len(frame) + 1)]
    frame["order"] = range(1, len(frame) + 1)
    frame["from_region"], frame["to_region"] = "a:west", "b:east"
    for name in ("partitions", "producers", "block", "consumers", "consumer_groups"):
        frame[name] = frame[name].astype("Int64")
    empty = pd.DataFrame(columns=["run_id", "test_id", "attempt", "setting", "reason"])
    return TrialRates(frame, empty, empty, "made")


def one_at_a_time(factors, *, blocks=3, base_bps=5e7, noise=0.03, seed=0, shift=0.0):
    """
    The baseline and each level of each factor: {(column, level): its true ratio to the baseline}.

    `shift` is what each block adds to the log of all its trials.
    """
    rng, rows = np.random.default_rng(seed), []
    for block in range(1, blocks + 1):
        for n, (change, ratio) in enumerate([(None, 1.0), *factors.items()]):
            bps = base_bps * ratio * np.exp(shift * block + rng.normal(0, noise))
            name = "baseline" if change is None else f"setting {n}"
            rows.append(trial(name, bps, block=block, **({} if change is None else dict([change]))))
    return rows


REGIONS = ("gcp:a", "gcp:b", "gcp:c")


def tables_of(found, crossing):
    """
    Tables of a run around these rates: nine partitions, three brokers, processors half busy, links of 100 Mbit/s.

    Over all links together, trial k carries `crossing[k]` bytes per byte of its payload.
    """
    pairs = [(a, b) for a in REGIONS for b in REGIONS if a != b]
    rows = {name: [] for name in ("links", "placements", "batches", "link_samples", "consumer_windows", "metrics")}
    rows["links"] = [
        {"run_id": "run", "from_region": a, "to_region": b, "delay_ms": 35.0, "rate_bps": 1e8} for a, b in pairs
    ]
    for number, (at, one) in enumerate(zip(found.rates.to_dict("records"), crossing, strict=True)):
        key = {name: at[name] for name in ("run_id", "test_id", "attempt")}
        records = round(at["records_per_s"])
        for p in range(9):
            rows["placements"] += [
                key | {"topic": "t", "partition": p, "replica": k, "broker": (p + k) % 3 + 1, "in_sync": True}
                | {"region": REGIONS[(p + k) % 3], "leads": k == 0}
                for k in range(3)
            ]  # fmt: skip
        rows["batches"] += [
            key | {"broker": 1, "topic": "t", "partition": 0, "at_s": at_s, "batches": 9, "records": records}
            for at_s in range(1000, 1010)
        ]
        total = one * 10 * records * 1000
        rows["link_samples"] += [
            key
            | {"at_s": 999.5 + second, "link_from": a, "link_to": b, "rate_bps": 1e8, "bytes_lost": 0}
            | {
                "bytes_delivered": 10**9 * number + round(total / 6 * second / 11),
                "bytes_backlog": 0,
                "packets_sent": second,
            }
            | {"packets_delivered": second, "packets_queue_dropped": 0}
            for a, b in pairs
            for second in range(12)
        ]
        rows["consumer_windows"] += [
            key | {"group": 0, "consumer": n, "bytes": 10 * records * 1000 / 3} for n in range(3)
        ]
        rows["metrics"] += [
            key
            | {"source": "sysstat", "host": "all", "subject": "cpu all", "metric": metric, "value": value}
            | {"at_utc": pd.Timestamp(1000 + second, unit="s", tz="UTC"), "interval_s": 1.0}
            for second in range(1, 10)
            for metric, value in (("idle", 49.0), ("iowait", 1.0), ("usr", 50.0))
        ]
    return {name: pd.DataFrame(of) for name, of in rows.items()}


READING = {
    "baseline": {"client_rack": "region"},
    "leaders": {},
    "nobody": {"consumer_groups": 0, "client_rack": "region"},
}

KERNEL = {"replica.socket.receive.buffer.bytes": -1}


def reading(n=4, far=0.0, noise=0.002, seed=0, ways=READING, brokers=KERNEL):
    """Producers and replicas cause 2.8 bytes per byte, readers from leaders 0.7, those with client.rack `far` of it."""
    rng, rows, crossing = np.random.default_rng(seed), [], []
    for block in range(1, n + 1):
        for name, changes in ways.items():
            rows.append(trial(name, 4e7, block=block, broker_settings=brokers, **changes))
            more = {"baseline": 0.7 * far, "leaders": 0.7, "nobody": 0.0}[name]
            crossing.append((2.8 + more) * (1 + rng.normal(0, noise)))
    found = rates(rows)
    return found, tables_of(found, crossing)
