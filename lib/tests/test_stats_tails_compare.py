"""Tails of benchmarks' results, and two tails compared."""

from math import inf

import numpy as np
import pandas as pd
import pytest
from simulations.latency_samples import of_values

from wanbench import folders
from wanbench.methods.tails import quantile_intervals
from wanbench.pages.tail_latency.latencies import of_benchmark
from wanbench.pages.tail_latency.quantiles import compare_tails, difference, quantiles
from wanbench.read.ingest import openmessaging

SHARED = folders.root().parent / "shared/data/omb"


def between(covered, tries, low, high):
    """Whether a count of successes fits a probability in this range, five standard errors allowed."""
    share = covered / tries
    return low - 5 * (low * (1 - low) / tries) ** 0.5 <= share <= high + 5 * (high * (1 - high) / tries) ** 0.5


# Of the OpenMessaging Benchmark


def benchmark(latencies, windows=20):
    """Tables as `ingest.openmessaging` makes them of a run of equal windows, end to end, in whole milliseconds."""
    whole = np.round(np.sort(latencies))
    values, counts = np.unique(whole, return_counts=True)
    shares = np.cumsum(counts) / len(whole)
    rows = [("end to end", None, q, value) for q, value in zip(shares, values, strict=True)]
    table = []
    for k, part in enumerate(np.split(np.asarray(latencies), windows)):
        part = np.sort(np.round(part))
        for q in (0.5, 0.75, 0.95, 0.99, 0.999):
            rows.append(("end to end", k, q, part[int(np.ceil(q * len(part))) - 1]))
        table.append({"window": k, "consume_records_per_s": len(part) / 10, "publish_records_per_s": len(part) / 10})
        table[-1]["max_end_to_end_ms"] = part[-1]
    return pd.DataFrame(rows, columns=["what", "window", "quantile", "latency_ms"]), pd.DataFrame(table)


def test_a_benchmarks_result_gives_its_quantiles_back():
    latencies = np.random.default_rng(8).lognormal(3, 0.5, 20_000)
    tail = of_benchmark(*benchmark(latencies))
    exact = of_values([np.round(latencies)])
    assert tail.n == 20_000
    for q in (0.5, 0.9, 0.99, 0.999):
        assert tail.quantile(q) == exact.quantile(q)
        low, high = exact.independent_interval(q)
        assert tail.independent_interval(q) == (low - 1, high + 1)
    assert tail.effective_n(0.9) > 2_000


@pytest.mark.parametrize("n", [20_000, 19_997])
def test_a_quantile_that_is_stated_is_given_back_between_the_ticks_of_the_histogram(n):
    """The histogram has ticks at 49.9 and 50.1 %, the result states p50 apart; its share need not be whole records."""
    rows = [(0.499, 52_400.0), (0.5, 52_820.0), (0.501, 53_222.0), (0.99, 60_000.0), (1.0, 70_000.0)]
    stated = pd.DataFrame(rows, columns=["quantile", "latency_ms"]).assign(what="publish", window=np.nan)
    windows = pd.DataFrame({"window": [0], "publish_records_per_s": [n / 10], "max_latency_ms": [7e4]})
    tail = of_benchmark(stated, windows, what="publish")
    assert tail.n == n and [tail.quantile(q) for q, _ in rows[:-1]] == [value for _, value in rows[:-1]]


def test_windows_that_differ_make_a_benchmark_worth_less():
    rng = np.random.default_rng(9)
    apart = np.concatenate([rng.lognormal(3 + shift, 0.2, 1_000) for shift in rng.normal(0, 0.2, 40)])
    assert of_benchmark(*benchmark(apart, 40)).effective_n(0.5) < 400


@pytest.mark.skipif(not SHARED.is_dir(), reason="no results of others beside this checkout")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.json")), ids=lambda path: path.stem[:30])
@pytest.mark.parametrize("what", ["end to end", "publish"])
def test_results_of_others_have_quantiles_with_intervals(path, what):
    found = openmessaging.read(path)
    tail = of_benchmark(found["quantiles"], found["benchmark_windows"], what=what)
    at = quantiles(tail)
    stated = found["quantiles"].query("what == @what and window.isna()").set_index("quantile").latency_ms
    for q in (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999):
        assert tail.quantile(q) == stated[q]
    for one in at.estimates:
        assert one.low <= one.estimate <= one.high
    assert 1 < tail.effective_n(0.999) < tail.n


# Two tails


def test_the_same_agree_and_others_differ():
    rng = np.random.default_rng(10)
    probe_like = of_values([rng.lognormal(3, 0.3, 4_000)], "the probe")
    same = of_benchmark(*benchmark(rng.lognormal(3, 0.3, 20_000)), name="the benchmark")
    found = compare_tails(probe_like, same, (0.5, 0.9, 0.99))
    assert found.agree == [True] * 3
    assert found.sentence == ("“the benchmark” and “the probe” do not differ significantly at p50, p90, p99.")
    slower = of_values([rng.lognormal(3.5, 0.3, 4_000)], "the other")
    found = compare_tails(probe_like, slower, (0.5, 0.99))
    assert found.agree == [False] * 2 and found.differences[0].low > 5
    assert (
        "differ at p50, p99" in str(found) and "minus that of the probe" in found.differences[0].finding("x").sentence
    )


def test_intervals_of_differences_cover():
    rng, tries, covered = np.random.default_rng(11), 1_000, 0
    low, high = quantile_intervals.ranks(500, 0.9, 0.95)
    for a, b in zip(np.sort(rng.exponential(1, (tries, 500))), np.sort(rng.exponential(3, (tries, 500))), strict=True):
        _, smallest, largest = difference(*((each[449], each[low - 1], each[high - 1]) for each in (a, b)))
        covered += smallest <= 2 * np.log(10) <= largest
    assert between(covered, tries, 0.945, 0.975)


def test_what_is_not_known_is_not_compared():
    rng = np.random.default_rng(14)
    values, lost = rng.lognormal(3, 0.3, (2, 1_000))
    lost[::2] = inf
    found = compare_tails(of_values([lost], "a"), of_values([values], "b"), (0.1, 0.9))
    assert found.agree == [False, None]
    assert found.sentence == "“b” and “a” differ at p10 and cannot be compared at 1 quantile."


def test_an_open_end_is_no_agreement():
    """Of 1,000 records p99.9 has no upper end: that speaks against what is slower by far, and for nothing."""
    rng = np.random.default_rng(13)
    short, long = (of_values([rng.lognormal(3, 0.3, n)], "it") for n in (1_000, 10_000))
    slow = of_values([rng.lognormal(9, 0.3, 1_000)], "slow")
    assert compare_tails(long, short, (0.999,)).agree == [None]
    assert compare_tails(long, slow, (0.999,)).agree == [False]
