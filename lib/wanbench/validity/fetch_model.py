"""Study: measured throughput over what the limits of replication allow, and the exponent between the two."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..stats.trials.fetch_model import compare_fetch_model, fetch_limits
from ..stats.trials.means import half_width
from .study import Outcome

DATASETS = 200
"""Coverage near 95 % is then known to within 3 points."""
PLAIN = {
    "rtt_ms": 40.0, "follower_rtt_ms": 70.0, "producers": 3, "partitions": 9, "brokers": 3, "replication": 3,
    "replica_receive_buffer_bytes": -1, "broker_receive_buffer_bytes": -1,
}  # fmt: skip
SMALLEST_BATCH = 2_048
REACHED = 0.5
METHOD = "t over settings"
SETTINGS = [
    {"settings": 4, "replicates": 3, "between": 0.1, "within": 0.03},
    {"settings": 8, "replicates": 3, "between": 0.1, "within": 0.03},
]


def trial(seed: int, settings: int, replicates: int, between: float, within: float) -> list[Outcome]:
    """
    Trials that reach half of what acknowledgements in turn allow, at batches that double from setting to setting.

    Standard deviations of logarithms: `between` settings, common to a setting's trials, and `within`. For comparison,
    t over trials, as if those of a setting were independent of each other.
    """
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame([PLAIN | {"batch_bytes": SMALLEST_BATCH * 2**k} for k in range(settings)])
    log = np.log(REACHED * fetch_limits(rows).predicted) + rng.normal(0, between, settings)
    frame = pd.concat([rows.assign(log=log)] * replicates, ignore_index=True)
    frame["bytes_per_s"] = np.exp(frame.log + rng.normal(0, within, len(frame)))
    found = compare_fetch_model(frame)
    one, exponent = found.reached["acks"], found.exponent
    return [
        Outcome("measured over predicted", METHOD, one.low, one.high, REACHED),
        Outcome("measured over predicted", "t over trials", *_over_trials(found.trials.reached), REACHED),
        Outcome("exponent", METHOD, exponent.low, exponent.high, 1.0),
    ]


def _over_trials(reached: pd.Series) -> np.ndarray:
    logs = np.log(reached)
    return np.exp(logs.mean() + np.array([-1, 1]) * half_width(logs, 0.95))
