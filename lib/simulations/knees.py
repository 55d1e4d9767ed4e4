"""
Simulation: the knee of p99 against the rate, and the highest rate within an objective, from few steps and blocks.

Latency follows a queue below saturation, and grows with the backlog beyond it. Its scatter grows towards saturation.
"""

from __future__ import annotations

from math import exp, nan

import numpy as np
from scipy.interpolate import PchipInterpolator

from wanbench.pages.tail_latency.best_rates import best_rate
from wanbench.pages.tail_latency.knees import POINTS, knee_of
from wanbench.pages.tail_latency.step_curves import StepCurve, ends, rising, student

from .simulation import MAIN, Outcome

DATASETS = 300
SATURATION = 4_000.0
"""Records/s at which the queue has no steady state."""
LEVEL_MS, WAIT_MS, TRIAL_S = 15.0, 8.0, 10.0
"""p99 without a queue, its growth with the load, and the length of a trial, in which the backlog grows."""
STEADY = 0.97
"""Load, as a share of saturation, up to which a trial is long enough for a steady queue."""
BLOCK_SD = 0.1
"""Standard deviation of log latency between blocks."""
OBJECTIVE_MS = 50.0
STEPS = {
    "6 steps to 1.2": np.linspace(0.3, 1.2, 6),
    "8 steps to 1.3": np.geomspace(0.2, 1.3, 8),
    "5 steps to 0.95": np.linspace(0.2, 0.95, 5),
    "flat": np.linspace(0.05, 0.4, 6),
}
"""Rates divided by the saturation rate; "flat" ends before latency rises noticeably."""
SETTINGS = [
    {"steps": steps, "n_blocks": blocks, "scatter": scatter}
    for steps in ("6 steps to 1.2", "8 steps to 1.3", "5 steps to 0.95")
    for blocks, scatter in ((3, 0.05), (5, 0.05), (5, 0.15))
] + [{"steps": "flat", "n_blocks": 3, "scatter": 0.1}]


def p99_ms(rate: np.ndarray | float) -> np.ndarray:
    """Return the p99 (ms) of a typical trial at a rate in records/s."""
    load = np.asarray(rate) / SATURATION
    steady = np.minimum(load, STEADY)
    backlog = 1_000 * TRIAL_S * np.maximum(load - STEADY, 0) / load
    return LEVEL_MS + WAIT_MS * steady / (1 - steady) + backlog


def trial(seed: int, steps: str, n_blocks: int, scatter: float) -> list[Outcome]:
    """Simulate two runs of stepped trials."""
    rng = np.random.default_rng(seed)
    loads = STEPS[steps]
    # As the study of tails does, nothing above the first step beyond saturation.
    beyond = loads[loads > STEADY]
    rates = SATURATION * (loads[loads <= beyond[0]] if len(beyond) else loads)
    first, second = (_curve(rates, _logs(rates, n_blocks, scatter, rng)) for _ in range(2))
    found = knee_of(first)
    if steps == "flat":
        none = float(found.where == "none")
        return [Outcome("no knee where there is none", MAIN, none, none, 1.0)]
    exact = knee_of(_curve(rates, np.log(p99_ms(rates))[None, :].repeat(2, axis=0)))
    again, two = knee_of(second), found.second_run
    right = again.knee.estimate
    pointed, error = first.jackknife(lambda logs: np.log(kneedle(rates, logs)))
    half = 2**0.5 * student(0.95, n_blocks) * error
    goal = float(np.interp(np.log(OBJECTIVE_MS), *_fine_curve()))
    rate = best_rate(first, OBJECTIVE_MS).rate
    return [
        Outcome("knee", MAIN, found.knee.low, found.knee.high, exact.knee.estimate),
        Outcome("knee of a second run", MAIN, two.low, two.high, right),
        Outcome("knee of a second run", "Kneedle", *ends(pointed, half), kneedle(rates, second.mean)),
        Outcome("rate within the objective", MAIN, rate.low, rate.high, exp(goal)),
    ]


def kneedle(rates: np.ndarray, logs: np.ndarray) -> float:
    """
    Find the knee by Kneedle (Satopaa et al. 2011): the point farthest from the chord of the curve.

    The axis of rates is linear, and that of latency logarithmic.

    >>> rates = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> round(kneedle(rates, np.array([0.0, 0.0, 0.0, 2.0, 4.0])), 1)
    3.1
    """
    logs = rising(logs)
    if logs[-1] <= logs[0]:
        return nan
    grid = np.linspace(rates[0], rates[-1], POINTS)
    at = PchipInterpolator(rates, logs)(grid)
    above = (grid - grid[0]) / (grid[-1] - grid[0]) - (at - at[0]) / (at[-1] - at[0])
    return float(grid[above.argmax()])


def _logs(rates: np.ndarray, blocks: int, scatter: float, rng) -> np.ndarray:
    own = scatter * (1 + np.minimum(rates / SATURATION, 1.0) ** 4)
    return np.log(p99_ms(rates)) + BLOCK_SD * rng.normal(size=(blocks, 1)) + own * rng.normal(size=(blocks, len(rates)))


def _curve(rates: np.ndarray, logs: np.ndarray) -> StepCurve:
    return StepCurve(0.99, rates, tuple(range(len(logs))), logs, logs.size)


def _fine_curve() -> tuple[np.ndarray, np.ndarray]:
    rates = np.linspace(0.2, 1.3, 4_000) * SATURATION
    return np.log(p99_ms(rates)), np.log(rates)
