"""Slow records in bursts: how many bursts there were decides how far an interval reaches."""

from math import isinf

import numpy as np
import pytest
from latency_samples import with_bursts
from simulations.latency_samples import of_values
from simulations.tails import latencies


@pytest.mark.parametrize("q", [0.99, 0.999])
@pytest.mark.parametrize(("bursts", "size"), [(1, 60), (3, 40)])
def test_few_bursts_leave_the_upper_end_open_and_are_counted(q, bursts, size):
    tail = of_values([with_bursts(30_000, bursts, size)], "it")
    found, beyond = tail.estimate(q), round(30_000 * (1 - q))
    assert isinf(found.high) and not isinf(tail.independent_interval(q)[1])
    assert len(tail.bursts(q)) == bursts and tail.bursts(q).sum() == pytest.approx(min(bursts * size, beyond), abs=3)
    came = f"{tail.bursts(q).sum():.0f} of the {beyond} records beyond it came in {bursts} burst"
    assert came in str(found) and "it needs the equivalent of 5 bursts of equal size" in str(found)
    assert f"{tail.bursts(q).sum():.0f} of {beyond} beyond it in {bursts} burst" in found.basis


def test_many_bursts_give_an_interval_of_two_ends():
    tail = of_values([with_bursts(30_000, 30, 5)], "it")
    found = tail.estimate(0.99)
    assert found.high < 330 and not found.warnings and "of 300 beyond it in 30 bursts" in found.basis


def test_an_end_feels_bursts_beyond_the_quantile():
    """The quantile lies below the bursts, among records that are independent; its upper end must not."""
    tail = of_values([with_bursts(30_000, 6, 40)])
    low, high = tail.interval(0.99)
    assert tail.quantile(0.99) < 60 < tail.independent_interval(0.995)[0] and high > 300 and low < 60
    assert tail.independent_interval(0.99)[1] < 60


@pytest.mark.parametrize(
    ("kind", "n", "minimum"), [("bursts", 6_000, 0.8), ("rare bursts", 30_000, 0.85), ("load regimes", 6_000, 0.93)]
)
def test_intervals_of_latencies_in_bursts_and_regimes_cover(kind, n, minimum):
    """p99. What still misses had no burst or one: what a run does not hold, it cannot tell of."""
    truth, covered = np.quantile(latencies(kind, 2_000_000, np.random.default_rng(100)), 0.99), 0
    for seed in range(40):
        low, high = of_values([latencies(kind, n, np.random.default_rng(seed))]).interval(0.99)
        covered += low <= truth <= high
    assert covered / 40 >= minimum


def test_independent_records_keep_the_interval_of_independent_records():
    same = 0
    for seed in range(20):
        tail = of_values([np.random.default_rng(seed).lognormal(3, 0.3, 6_000)])
        same += tail.interval(0.99) == tail.independent_interval(0.99)
    assert same >= 15
