"""Trials of one Kafka over three regions, simulated with a known answer: rates as `trial_rates` would give them."""

import json

import numpy as np
import pandas as pd

from wanbench.stats.trials.rates import TrialRates

BASE = {
    "delay_ms": None, "topics": 1, "partitions": 9, "replication": 3, "producers": 3, "consumer_groups": 1,
    "consumers": 3, "acks": "all", "min_insync": 2, "batch_bytes": 65_536, "linger_ms": 50.0, "compression": "none",
    "payload": "letters", "record_bytes": 1000, "client_rack": None, "client_send_buffer_bytes": -1, "max_in_flight": 5,
    "client_receive_buffer_bytes": -1, "broker_settings": "", "security": "plain", "gateway_bps": None,
    "client_regions": 3,
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
    return TrialRates(frame, empty, empty, empty, "made")


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
