"""Simulation: false alarms of the detector of slow brokers, and the time until it detects a shift."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from scipy.signal import lfilter

from wanbench.change_detection import Detector, DetectorSettings

from .simulation import Outcome

DATASETS = 200
"""Data sets per setting; each is an hour long without a shift, and some minutes with a shift."""
PER_S = 10
"""Latencies per second, as measured by the probe."""
SPREAD = 0.25
"""Standard deviation of log latency: most latencies are within a factor of 1.6 of the median."""
LEARN_S, HOUR_S, AFTER_S = 60, 3600, 60
PROMISED_PER_H = 0.5
WITHIN_S = (5, 10, 30)
SHORT = {"learn_s": 10, "window_s": 0.5}
"""The shortest baseline, for a load that lasts only a minute."""
KINDS = ("independent", "AR(1) 0.5", "AR(1) 0.9", "AR(1) 0.99", "bursts", "long bursts")
SETTINGS = [
    *({"kind": kind, "shift": 1.0} for kind in KINDS),
    *({"kind": kind, "shift": shift} for kind in ("independent", "AR(1) 0.9") for shift in (1.25, 1.5, 2.0, 4.0)),
    *({"kind": kind, "shift": shift} | SHORT for kind in ("independent", "AR(1) 0.9") for shift in (1.0, 2.0)),
]


def trial(seed: int, kind: str, shift: float, learn_s: float = LEARN_S, window_s: float = 1.0) -> list[Outcome]:
    """
    Simulate latencies of a broker with a median of 10 ms, which become `shift` times as long after a while.

    A statement, such as "alarm within 5 s", becomes an interval of length 0: at 1 if it is true, and at 0 if not. Its
    truth is 1, so its coverage is the share of data sets in which the statement is true. Without a shift, the
    statements are at most 0, 1, 2 and 4 false alarms in an hour (a Poisson process of the promised rate has none in
    61 % of hours). With a shift, they are an alarm within 5, 10 and 30 s.
    """
    rng = np.random.default_rng(seed)
    seconds = learn_s + (HOUR_S if shift == 1.0 else 2 * AFTER_S)
    values = log(10) + SPREAD * noise(kind, seconds * PER_S, rng)
    change = (learn_s + AFTER_S) * PER_S
    if shift != 1.0:
        values[change:] += log(shift)
    promise = {"learn_s": learn_s, "window_s": window_s, "false_alarms_per_h": PROMISED_PER_H}
    detector = Detector(DetectorSettings(**promise))
    updates = (detector.update(n / PER_S, 1, exp(value)) for n, value in enumerate(values))
    times = [alarm.at_s for alarm in updates if alarm]
    if shift == 1.0:
        return [_held(f"at most {most} false alarms in an hour", len(times) <= most) for most in (0, 1, 2, 4)]
    delays = [at_s - change / PER_S for at_s in times if at_s >= change / PER_S]
    return [_held(f"alarm within {most} s", bool(delays) and delays[0] <= most) for most in WITHIN_S]


def noise(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """
    Return a stationary series whose standard deviation, without bursts, is 1.

    The coefficient of AR(1) relates one latency to the next, a tenth of a second later. There are about 20 bursts per
    hour, like pauses for garbage collection or flushes: in a burst, 1 to 10 latencies in turn, or those of 1 to 5 s for
    long bursts, are 2 to 20 times as long.
    """
    if kind.startswith("AR(1)"):
        phi = float(kind.split()[1])
        drawn = rng.normal(size=n + 1000) * sqrt(1 - phi**2)
        return lfilter([1.0], [1.0, -phi], drawn)[1000:]
    series = rng.normal(size=n)
    if kind != "independent":
        longest = 50 if kind == "long bursts" else 10
        for start in rng.integers(n, size=rng.poisson(20 * n / PER_S / 3600)):
            length = int(rng.integers(longest // 5 if kind == "long bursts" else 1, longest + 1))
            series[start : start + length] += log(rng.uniform(2, 20)) / SPREAD
    return series


def _held(quantity: str, holds: bool) -> Outcome:
    return Outcome(quantity, "change_detection", float(holds), float(holds), 1.0)
