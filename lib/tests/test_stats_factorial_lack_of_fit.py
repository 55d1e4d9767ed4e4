"""Lack of fit against replicates, and against a bend where nothing was repeated."""

import numpy as np
import pytest

from wanbench.designs import factorial
from wanbench.pages.private_vs_internet.fit import fit_factorial

LEVELS = {
    "bend along two factors": {
        "delay_ms": [4.0, 8.0, 16.0, 32.0, 64.0], "rate_bps": [5e6, 1e7, 2e7, 4e7, 8e7],
    },
    "factors that saturate together": {
        "delay_ms": [10.0, 40.0], "rate_bps": [1e7, 1e8], "batch_bytes": [16_384.0, 131_072.0],
        "acks": ["1", "all"], "compression": ["none", "lz4"],
    },
}  # fmt: skip


def fitted(levels, *, bent, seed=1, replicates=1, delay="delay_ms"):
    """An experiment that is bent, or straight in logarithms; `delay` as in `fit_factorial`."""
    plan = factorial(levels, replicates=replicates, seed=seed)
    batch = plan.batch_bytes if "batch_bytes" in plan else 32_768
    window, rate = 5 * batch / (2 * plan.delay_ms / 1000), plan.rate_bps / 8
    reached = np.minimum(window, rate) if bent else window**0.6 * rate**0.2
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.02, len(plan)))
    return fit_factorial(plan.assign(batches_per_s=reached / batch * noise), "batches_per_s", [*levels], delay=delay)


@pytest.mark.parametrize("case", LEVELS)
def test_a_limit_that_is_met_on_the_way_is_noticed_without_replicates(case):
    found = fitted(LEVELS[case], bent=True)
    assert found.lack_of_fit_p < 0.01
    assert "does not fit" in str(found) and "tested against a bend" in str(found)


@pytest.mark.parametrize("case", LEVELS)
def test_straight_lines_are_seldom_taken_for_bent(case):
    p_values = [fitted(LEVELS[case], bent=False, seed=seed, delay=None).lack_of_fit_p for seed in range(20)]
    assert sum(p < 0.1 for p in p_values) <= 6  # a right test exceeds it in one of 400 simulations


def test_what_was_measured_once_says_so_in_each_sentence():
    levels = LEVELS["bend along two factors"]
    once = fitted(levels, bent=False)
    for each in (*once.elasticities.values(), once.thesis):
        assert "each measured once" in each.sentence
    assert "without replicates only curvature" in str(once.finding("where"))
    twice = fitted(levels, bent=False, replicates=2)
    assert "measured once" not in str(twice) and "On average from 4.00 ms to 64.0 ms" in str(twice)


def test_the_elasticity_is_the_average_between_the_levels():
    """Throughput is the minimum of a window and a rate: its elasticity is -1 or 0 at a point, between on average."""
    levels = {"delay_ms": [10.0, 40.0], "rate_bps": [1e7, 4e7]}
    factors = levels | {"acks": ["1", "all"], "compression": ["none", "lz4"]}
    inside = 0
    for seed in range(30):
        plan = factorial(factors, replicates=1, seed=seed)
        rate = np.minimum(5 * 16_384 / (2 * plan.delay_ms / 1000), plan.rate_bps / 8)
        noise = np.exp(np.random.default_rng(seed).normal(0, 0.05, len(plan)))
        frame = plan.assign(batches_per_s=rate * noise)
        found = fit_factorial(frame, "batches_per_s", [*factors], delay=None).elasticities["delay_ms"]
        logs = np.log(rate).groupby(plan.delay_ms).mean()
        inside += found.low <= (logs[40.0] - logs[10.0]) / np.log(4) <= found.high
    assert inside >= 26  # 95 % intervals hold fewer in one of 64 simulations, 80 % intervals in three of four
