"""Two systems: verdicts from repeated trials."""

from math import inf

import numpy as np
import pytest
from simulations.latency_samples import of_values

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdict, verdicts


def overall(found):
    """The verdict of all rows, which agree."""
    [only] = found.rows.verdict.unique()
    return only


def system(name, factors, n=20_000, seed=0, blocks=()):
    """Log-normal latencies, each trial times its factor."""
    rng = np.random.default_rng(seed)
    runs = [of_values([factor * rng.lognormal(3, 0.3, n)]) for factor in factors]
    return TailTrials(name, runs, blocks)


def system_that_loses(name):
    """Every tenth record never arrives."""
    runs = [np.concatenate([np.random.default_rng(k).lognormal(3, 0.3, 900), [inf] * 100]) for k in range(4)]
    return TailTrials(name, [of_values([run]) for run in runs])


BLOCKS = np.array([1.0, 1.3, 0.8, 1.1])


def test_a_slower_system_is_worse_a_faster_one_better_and_equal_ones_are_tied():
    a, slower = system("a", BLOCKS), system("b", 1.5 * BLOCKS, seed=1)
    at = (0.5, 0.9, 0.99)
    found = verdict(a, slower, at)
    assert overall(found) == "worse" and found.rows.ratio.between(1.4, 1.6).all()
    assert overall(verdict(slower, a, at)) == "better"
    equal = verdict(a, system("b", BLOCKS, seed=2), at)
    assert overall(equal) == "tied"
    assert found.rows["quantile"].tolist() == [0.5, 0.9, 0.99]


def test_a_difference_within_the_margin_is_tied_and_beyond_it_worse():
    a, b = system("a", BLOCKS), system("b", 1.05 * BLOCKS, seed=1)
    assert overall(verdict(a, b, 0.5)) == "tied"


def test_values_in_whole_milliseconds_do_not_hide_a_difference():
    fine = [np.linspace(2.55, 2.95, 200), np.linspace(2.02, 2.5, 200)]  # 1.22 times as slow, yet 3 ms both
    slow, fast = (TailTrials("it", [of_values([np.ceil([*ms, 3.5])])] * 3) for ms in fine)
    found = verdict(slow, fast, 0.5)
    assert overall(found) == "not enough data" and "resolution of 67 %" in str(found)
    assert found.ratios[0].low < 2.26 / 2.75 < found.ratios[0].high


def test_trials_are_held_against_those_of_their_block():
    """In the order of a alone the second system would look as scattered as the blocks."""
    a = system("a", BLOCKS, blocks=list("wxyz"))
    b = system("b", 1.2 * BLOCKS[::-1], seed=1, blocks=list("zyxw"))
    assert overall(verdict(a, b, 0.5)) == "worse"
    other_blocks = system("b", 1.2 * BLOCKS[::-1], seed=1, blocks=list("wxyz"))
    assert overall(verdict(a, other_blocks, 0.5)) == "not enough data"


def test_too_few_blocks_or_records_are_not_enough_data():
    a, b = system("a", BLOCKS[:2]), system("b", 2 * BLOCKS[:2], seed=1)
    found = verdict(a, b, 0.5)
    assert overall(found) == "not enough data" and "2 blocks with trials of both; 3 are needed" in str(found)
    found = verdict(system("a", BLOCKS, 1_000), system("b", 2 * BLOCKS, 1_000, 1), (0.5, 0.999))
    assert found.rows.verdict.tolist() == ["worse", "not enough data"]
    assert found.rows.reason[1] == "a trial has 1,000 records; p99.9 needs 5,000"


def test_lost_records_count_as_the_slowest():
    a = system("a", BLOCKS)
    b = system_that_loses("b")
    found = verdict(a, b, 0.95)
    assert overall(found) == "worse" and np.isfinite(found.rows.ratio[0]) and "the ratio is only a limit" in str(found)
    assert found.ratios[0].high == np.inf and verdict(b, a, 0.95).ratios[0].low == 0


def test_two_systems_that_both_lose_records_are_not_tied():
    both = [system_that_loses(name) for name in "ab"]
    found = verdict(*both, 0.99)
    assert overall(found) == "not enough data" and "lost record in 4 blocks" in found.rows.reason[0]
    assert np.isnan(found.rows.ratio[0])
    assert overall(verdict(*both, 0.5)) != "not enough data"


def test_verdicts_of_a_table_hold_together():
    """Of 40 rows of equal systems two or so differ if each is looked at alone."""
    pairs, rng = {}, np.random.default_rng(5)
    for k in range(40):
        sides = [system(n, np.exp(rng.normal(0, 0.2, 4)), 200, rng.integers(10**6)) for n in "ab"]
        pairs[f"step {k}"] = tuple(sides)
    found = verdicts(pairs, 0.5).rows
    alone, together = (found[c].isin(["better", "worse"]).sum() for c in ("verdict_alone", "verdict"))
    assert alone <= 8 and together == 0
    single = found[found.verdict_alone.isin(["better", "worse"])]
    assert (
        len(single)
        and (single.reason == single.verdict_alone + " if this were the only row, but not for all rows at once").all()
    )
    assert not single.reason.str.contains("contains both 1").any()


def test_systems_without_a_common_block_are_not_compared():
    found = verdict(system("a", BLOCKS, blocks="wxyz"), system("b", BLOCKS, blocks="stuv"), 0.5)
    assert overall(found) == "not enough data" and "0 blocks with trials of both" in str(found)
    with pytest.raises(ParameterError, match="blocks is"):
        system("a", BLOCKS, blocks=(1, 2))


def test_pooled_trials_are_runs_of_one_distribution():
    a = system("a", BLOCKS, 1_000)
    runs = [np.repeat(tail.values_ms, tail.counts) for tail in a.tails]
    together = np.sort(np.concatenate(runs))
    assert a.pooled.n == 4_000 and a.pooled.quantile(0.99) == together[3_959]
    assert a.pooled.parts.kind == "runs" and a.pooled.parts.n_runs == 4
    assert a.pooled.interval(0.5) == of_values(runs).interval(0.5)
