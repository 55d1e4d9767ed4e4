"""Tails of latencies: intervals that cover, histograms that merge, what is cut, what is compared, what is drawn."""

from math import inf, isinf, isnan

import numpy as np
import pandas as pd
import probe_samples as samples
import pytest
from scipy.signal import lfilter
from scipy.special import ndtr

from wanbench.errors import ParameterError
from wanbench.ingest import kafka_probe
from wanbench.ingest.kafka_probe.histograms import encoded
from wanbench.stats.tails import histograms, percentiles_figure, quantile_intervals, stationarity
from wanbench.stats.tails import latencies as tails
from wanbench.stats.tails.compare import compare_tails
from wanbench.stats.tails.over_time_figure import over_time
from wanbench.validity import study
from wanbench.validity.tails import trial


def between(covered, tries, low, high):
    """Whether a count of successes fits a probability in this range, five standard errors allowed."""
    share = covered / tries
    return (
        low - 5 * (low * (1 - low) / tries) ** 0.5 <= share <= high + 5 * (high * (1 - high) / tries) ** 0.5
    )


# Order statistics


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_intervals_of_independent_values_cover(q):
    rng, tries = np.random.default_rng(int(100 * q)), 2_000
    values = np.sort(rng.exponential(size=(tries, 1_000)), axis=1)
    low, high = quantile_intervals.ranks(1_000, q, 0.95)
    inside = (values[:, low - 1] <= -np.log(1 - q)) & (-np.log(1 - q) <= values[:, high - 1])
    assert between(inside.sum(), tries, 0.95, 0.975)


def test_ranks_are_as_in_the_book():
    """Hahn & Meeker's table A.15 for the median of 100 values at 95 %: ranks 40 and 61."""
    assert quantile_intervals.ranks(100, 0.5, 0.95) == (40, 61)


@pytest.mark.parametrize("q", [0.9, 0.99, 0.999])
def test_the_fewest_values_are_the_fewest(q):
    n = quantile_intervals.min_values(q, 0.95)
    assert None not in quantile_intervals.ranks(n, q, 0.95)
    assert None in quantile_intervals.ranks(n - 1, q, 0.95)


def test_an_effective_number_that_is_the_number_changes_nothing():
    for n, q in ((100, 0.5), (1_000, 0.99), (5_000, 0.999)):
        exact, real = quantile_intervals.ranks(n, q, 0.95), quantile_intervals.ranks(n, q, 0.95, n - 1e-6)
        assert exact == pytest.approx(real, abs=1)


@pytest.mark.parametrize("wrong", [0, 1, 1.5, True, "p99", float("nan")])
def test_a_quantile_lies_between_0_and_1(wrong):
    with pytest.raises(ParameterError, match="allowed: a number between 0 and 1"):
        tails.of_values([np.arange(10.0)]).quantile(wrong)


# Dependence


def autocorrelated(rng, n, r):
    """Latencies, log-normal, whose ranks follow each other at r; their quantile q is that of a log-normal."""
    noise = rng.normal(size=n + 200)
    return np.exp(lfilter([(1 - r**2) ** 0.5], [1, -r], noise)[200:])


@pytest.mark.parametrize(("r", "q"), [(0.0, 0.5), (0.7, 0.5), (0.7, 0.99), (0.9, 0.9)])
def test_intervals_of_dependent_values_cover_where_naive_ones_do_not(r, q):
    rng, tries, truth = np.random.default_rng(7), 300, float(np.exp(_normal(q)))
    inside = naive = 0
    for _ in range(tries):
        tail = tails.of_values([autocorrelated(rng, 3_000, r)])
        low, high = tail.interval(q)
        inside += low <= truth <= high
        low, high = tail.independent_interval(q)
        naive += low <= truth <= high
    assert between(inside, tries, 0.92, 0.985)
    assert (naive / tries < 0.9) == (r > 0)


def _normal(q):
    from scipy.stats import norm

    return norm.ppf(q)


def test_runs_that_differ_are_the_unit():
    rng, tries = np.random.default_rng(3), 300
    inside = naive = 0
    for _ in range(tries):
        runs = [np.exp(rng.normal(shift, 1, 400)) for shift in rng.normal(0, 0.3, 8)]
        tail = tails.of_values(runs)
        low, high = tail.interval(0.5)
        inside += low <= 1 <= high
        low, high = tail.independent_interval(0.5)
        naive += low <= 1 <= high
    assert between(inside, tries, 0.93, 0.98) and naive / tries < 0.8


def test_the_bootstrap_stands_beside():
    tail = tails.of_values([autocorrelated(np.random.default_rng(1), 2_000, 0.9)])
    found = tail.estimate(0.9)
    [other] = found.others
    assert "stationary bootstrap" in other.method and other.low < found.estimate < other.high
    assert found.naive.high - found.naive.low < 0.7 * (found.high - found.low)
    assert found.low < other.high and other.low < found.high


# Bursts


def with_bursts(n, bursts, size, seed=0):
    """Independent latencies, and so many bursts of equal size at random times, far above all others."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(3, 0.3, n)
    for start in rng.choice(100, bursts, replace=False) * (n // 100) + 7:
        values[start : start + size] += 300
    return values


@pytest.mark.parametrize("q", [0.99, 0.999])
@pytest.mark.parametrize(("bursts", "size"), [(1, 60), (3, 40)])
def test_few_bursts_leave_the_upper_end_open_and_are_counted(q, bursts, size):
    tail = tails.of_values([with_bursts(30_000, bursts, size)], "it")
    found, beyond = tail.estimate(q), round(30_000 * (1 - q))
    assert isinf(found.high) and not isinf(tail.independent_interval(q)[1])
    assert len(tail.bursts(q)) == bursts and tail.bursts(q).sum() == pytest.approx(
        min(bursts * size, beyond), abs=3
    )
    came = f"{tail.bursts(q).sum():.0f} of the {beyond} records beyond it came in {bursts} burst"
    assert came in str(found) and "it takes 5 of equal size" in str(found)
    assert f"{tail.bursts(q).sum():.0f} of {beyond} beyond it in {bursts} burst" in found.basis


def test_many_bursts_give_an_interval_of_two_ends():
    tail = tails.of_values([with_bursts(30_000, 30, 5)], "it")
    found = tail.estimate(0.99)
    assert found.high < 330 and not found.warnings and "of 300 beyond it in 30 bursts" in found.basis


def test_an_end_feels_bursts_beyond_the_quantile():
    """The quantile lies below the bursts, among records that are independent; its upper end must not."""
    tail = tails.of_values([with_bursts(30_000, 6, 40)])
    low, high = tail.interval(0.99)
    assert tail.quantile(0.99) < 60 < tail.independent_interval(0.995)[0] and high > 300 and low < 60
    assert tail.independent_interval(0.99)[1] < 60


@pytest.mark.parametrize(
    ("kind", "n", "minimum"),
    [("bursts", 6_000, 0.8), ("rare bursts", 30_000, 0.85), ("load regimes", 6_000, 0.93)],
)
def test_intervals_of_latencies_in_bursts_and_regimes_cover(kind, n, minimum):
    """p99. What still misses had no burst or one: what a run does not hold, it cannot tell of."""
    covered = 0
    for seed in range(40):
        [found] = [one for one in trial(seed, kind, n) if (one.quantity, one.method) == ("p99", study.MAIN)]
        covered += found.low <= found.truth <= found.high
    assert covered / 40 >= minimum


def test_independent_records_keep_the_interval_of_independent_records():
    same = 0
    for seed in range(40):
        tail = tails.of_values([np.random.default_rng(seed).lognormal(3, 0.3, 6_000)])
        same += tail.interval(0.99) == tail.independent_interval(0.99)
    assert same >= 30


def test_bursts_of_histograms_are_seen_between_their_windows():
    values = with_bursts(30_000, 1, 60)
    tail = tails.of_histograms(histogram_table([values], 100))
    assert tail.bursts(0.99).tolist() == [60] and isinf(tail.interval(0.99)[1])


# Sentences


def test_a_result_is_shown_as_its_sentence():
    tail = tails.of_values([np.random.default_rng(0).lognormal(3, 0.3, 20_000)], "it")
    found = tails.quantiles(tail, (0.5,))
    assert repr(found) == str(found) == found.sentence
    start = "Latency of it (20,000 records, 95 % intervals): p50 "
    assert str(found) == f"{start}{found[0.5].written} ({found[0.5].written_interval})."
    assert found.finding("tail").estimate == pytest.approx(found[0.5].estimate, rel=1e-5)
    assert repr(tail) == f"Latency of it: 20,000 records, p50 {tail.quantile(0.5):.1f} ms"
    assert repr(compare_tails(tail, tail, (0.5,))).startswith("it and it agree")


def test_an_interval_is_known_at_any_level_with_its_standard_error():
    found = tails.of_values([np.random.default_rng(0).exponential(20, 20_000)]).estimate(0.9)
    assert found.conf_int() == found.conf_int(0.95) == (found.low, found.high)
    low, high = found.conf_int(0.5)
    assert found.low < low < found.estimate < high < found.high
    assert found.standard_error == pytest.approx((0.9 * 0.1 / 20_000) ** 0.5 / (0.1 / 20), rel=0.15)
    with pytest.raises(ParameterError, match="level is 95"):
        found.conf_int(95)
    apart = compare_tails(
        *(tails.of_values([np.random.default_rng(k).exponential(20, 500)]) for k in (0, 9)), (0.5,)
    ).differences[0]
    assert apart.conf_int(0.5)[1] < apart.high


def test_too_few_records_for_a_quantile_are_said_to_be():
    tail = tails.of_values([np.random.default_rng(0).permutation(1_000) + 1.0], "it")
    found = tails.quantiles(tail, (0.5, 0.999))
    assert found[0.5].estimate == 500 and not found[0.5].warnings
    assert isinf(found[0.999].high) and found[0.999].written_interval.startswith("at least")
    [warning] = found[0.999].warnings
    assert "p99.9 of it has no upper limit: 1,000 records are too few, it takes 3,688" in warning
    assert found[0.999].finding("tail-p999").estimate == 999


def test_records_that_never_came_are_slower_than_all():
    values = np.arange(1.0, 1001.0)
    values[::50] = inf
    found = tails.quantiles(tails.of_values([values], "it"), (0.5, 0.98, 0.99))
    assert found.tail.n_lost == 20 and found.tail.n == 1_000
    assert found[0.5].estimate == 511 and found[0.98].estimate == 1000
    assert isnan(found[0.99].estimate) and "20 records of 1,000 never arrived" in str(found[0.99])
    assert isinf(found[0.98].high)


def test_a_quantile_is_the_smallest_that_the_share_does_not_exceed():
    tail = tails.of_values([np.array([1.0, 1.0, 1.0, 7.0])])
    assert [tail.quantile(q) for q in (0.25, 0.75, 0.76)] == [1, 1, 7]


# Histograms


def histogram_table(runs, window_of=500):
    rows = []
    for k, run in enumerate(runs):
        for window, at in enumerate(range(0, len(run), window_of)):
            text = encoded(run[at : at + window_of] * 1_000)
            rows.append({"run_id": str(k), "group": 0, "window": window, "histogram": text})
    return pd.DataFrame(rows)


def test_merged_histograms_are_the_histogram_of_all():
    values = np.round(np.random.default_rng(5).lognormal(3, 1, 4_000), 3)
    frame = histogram_table([values])
    tail = tails.of_histograms(frame)
    assert [each.tolist() for each in histograms.summed(map(histograms.decoded, frame.histogram))] == [
        each.tolist() for each in histograms.decoded(encoded(values * 1_000))
    ]
    exact = tails.of_values([values])
    assert tail.n == exact.n == 4_000
    for q in (0.5, 0.9, 0.99, 0.999):
        assert tail.quantile(q) == pytest.approx(exact.quantile(q), rel=2e-3)
    middle = np.mean([tails.of_histograms(frame[frame.window == k]).quantile(0.99) for k in range(8)])
    assert middle != pytest.approx(exact.quantile(0.99), rel=1e-3)  # what an average of percentiles would say


def test_histograms_of_runs_have_runs_as_units():
    rng = np.random.default_rng(6)
    runs = [rng.lognormal(shift, 0.5, 1_000) for shift in (2.0, 2.5, 3.0, 3.5)]
    tail = tails.of_histograms(histogram_table(runs))
    assert tail.parts.kind == "runs" and tail.effective_n(0.5) < 40
    assert tails.of_values(runs).effective_n(0.5) == pytest.approx(tail.effective_n(0.5), rel=0.05)


def test_a_text_that_is_no_histogram_is_refused():
    with pytest.raises(ParameterError, match="allowed: an HdrHistogram"):
        histograms.decoded("nonsense")


# Warm-up and stationarity


def test_a_slow_start_is_cut_and_a_steady_one_is_not():
    rng = np.random.default_rng(2)
    steady_part = rng.lognormal(3, 0.1, 2_000)
    slow = np.concatenate([np.linspace(400, 22, 200) * rng.lognormal(0, 0.05, 200), steady_part])
    assert 150 <= stationarity.warm_up(slow) <= 320
    cuts = [stationarity.warm_up(rng.lognormal(3, 0.1, 2_000)) for _ in range(20)]
    assert np.median(cuts) < 400


def test_slow_records_at_the_end_do_not_decide_over_the_start():
    values = np.random.default_rng(2).lognormal(3, 0.1, 2_000)
    values[1_500::100] = 5_000
    assert stationarity.warm_up(values) < 700


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        (np.random.default_rng(0).lognormal(3, 0.2, 4_000), True),
        (np.random.default_rng(0).lognormal(3, 0.2, 4_000) * np.linspace(1, 1.5, 4_000), False),
        (np.full(100, 20.0), True),
        (np.arange(30.0), True),
    ],
    ids=["steady", "growing", "constant", "too short"],
)
def test_stationarity(values, is_steady):
    cautions = stationarity.drift_cautions([values])
    assert ("not stationary" in "".join(cautions)) is not is_steady


@pytest.mark.parametrize("wrong", ["never", -1, True, inf])
def test_the_rule_of_the_cut_is_checked(wrong):
    with pytest.raises(ParameterError, match="warm_up is"):
        stationarity.cut(np.ones(5), np.arange(5.0), wrong)


# Of a probe


def probe(tmp_path, latencies, **more):
    receipts = [samples.receipt(n, ms) for n, ms in enumerate(latencies) if ms == ms]
    path = samples.write(tmp_path, samples.producer(len(latencies)), samples.consumer(receipts), **more)
    return kafka_probe.read(path)


def test_a_probe_with_held_and_lost_records(tmp_path):
    latencies = np.full(2_000, 25.0) + np.random.default_rng(1).random(2_000)
    latencies[50::100] += 500
    latencies[77] = np.nan
    found = probe(tmp_path, latencies)
    tail = tails.of_records(found["probe_records"], warm_up=0)
    assert tail.n == 2_000 and tail.n_lost == 1
    at = tails.quantiles(tail, (0.5, 0.985, 0.995))
    assert at[0.5].high < 27 and at[0.985].estimate < 27 and at[0.995].low > 500
    again = tails.of_histograms(found["histograms"])
    assert again.quantile(0.5) == pytest.approx(tail.quantile(0.5), rel=2e-3) and again.n == 1_999


def test_seconds_of_warm_up_are_cut(tmp_path):
    latencies = np.concatenate([np.full(100, 300.0), np.full(400, 25.0)])
    records = probe(tmp_path, latencies)["probe_records"]
    assert tails.of_records(records, warm_up=2.0).n == 400
    tail = tails.of_records(records, warm_up="mser")
    assert (tail.n, tail.n_cut) == (400, 100) and "400 records, after 100 of warm-up" in tail.estimate(
        0.5
    ).basis
    with pytest.raises(
        ParameterError, match="warm_up is 60; allowed: a number of seconds that leaves records"
    ):
        tails.of_records(records, warm_up=60)


def test_drift_is_a_caution(tmp_path):
    latencies = np.linspace(25, 60, 2_000) + np.random.default_rng(1).random(2_000)
    found = tails.quantiles(tails.of_records(probe(tmp_path, latencies)["probe_records"], warm_up=0), (0.5,))
    assert "are not stationary" in str(found[0.5]) and "are not stationary" in str(found)


def test_without_clocks_there_are_no_quantiles(tmp_path):
    records = probe(tmp_path, np.full(10, 25.0), clock=(None, None, "not known"))["probe_records"]
    with pytest.raises(ParameterError, match="offset between the clocks"):
        tails.of_records(records)
    with pytest.raises(ParameterError, match="by group 3"):
        tails.of_records(records, group=3)


def test_from_the_actual_send_a_late_producer_does_not_show(tmp_path):
    """The samples are sent 0.1 ms after they are due."""
    records = probe(tmp_path, np.full(100, 25.0))["probe_records"]
    assert tails.of_records(records).quantile(0.5) == 25
    assert tails.of_records(records, since="sent").quantile(0.5) == pytest.approx(24.9, abs=1e-3)
    with pytest.raises(ParameterError, match="since is 'x'; allowed: 'intended', 'sent'"):
        tails.of_records(records, since="x")


def test_a_tail_of_publish_latency_counts_each_record_once_and_what_is_never_acknowledged(tmp_path):
    """Two groups; one record is received by the second alone, one by none, one is never acknowledged."""
    producer = samples.producer(200, acknowledged=range(1, 200))
    groups = [[samples.receipt(n, 60) for n in range(200) if n not in missed] for missed in ((7, 9), (9,))]
    path = samples.write(tmp_path, producer, *map(samples.consumer, groups), clock=(None, None, "not known"))
    records = kafka_probe.read(path)["probe_records"]
    for since, latency_ms in (("intended", 30.1), ("sent", 30.0)):
        tail = tails.of_records(records, what="publish", since=since, warm_up=0)
        assert (tail.n, tail.n_lost) == (200, 1) and tail.quantile(0.99) == pytest.approx(
            latency_ms, abs=1e-3
        )
    both = pd.concat([records.assign(test_id=name) for name in "ab"], ignore_index=True)
    assert tails.of_records(both, what="publish", warm_up=0).n == 400
    with pytest.raises(ParameterError, match="what is 'x'; allowed: 'end to end', 'publish'"):
        tails.of_records(records, what="x")
    none = kafka_probe.read(samples.write(tmp_path, samples.producer(acknowledged=[]), samples.consumer([])))
    with pytest.raises(ParameterError, match="no record was acknowledged"):
        tails.of_records(none["probe_records"], what="publish")


@pytest.mark.parametrize("producers, cautioned", [(1, True), (2, False)])
def test_a_probe_that_queues_on_itself_is_a_caution(tmp_path, producers, cautioned):
    """A record every 20 ms that takes 30 to publish needs two producers."""
    receipts = [samples.receipt(n, 40) for n in range(500)]
    path = samples.write(
        tmp_path,
        samples.producer(500),
        samples.consumer(receipts),
        settings={"producers": producers},
        leaders=(1,),
    )
    found = tails.quantiles(tails.of_records(kafka_probe.read(path)["probe_records"], warm_up=0), (0.5,))
    assert ("publishing takes longer than the interval times the producers" in str(found)) == cautioned


def test_several_probes_are_runs(tmp_path):
    frames = []
    for k in range(3):
        latencies = np.random.default_rng(k).lognormal(3 + k / 10, 0.1, 600)
        frames.append(probe(tmp_path / str(k), latencies)["probe_records"].assign(test_id=str(k)))
    tail = tails.of_records(pd.concat(frames, ignore_index=True), warm_up=0)
    assert tail.n == 1_800 and tail.parts.kind == "runs" and [len(run) for run in tail.runs] == [600] * 3
    assert tail.effective_n(0.5) < 20


# Figures


def test_the_percentile_plot_shows_each_distribution_and_its_intervals():
    rng = np.random.default_rng(12)
    both = [tails.quantiles(tails.of_values([rng.lognormal(3, s, 3_000)], f"<{s}>")) for s in (0.2, 0.4)]
    figure = percentiles_figure.percentiles(both)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [line.name for line in lines] == ["&lt;0.2&gt; (3,000 records)", "&lt;0.4&gt; (3,000 records)"]
    for line, found in zip(lines, both, strict=True):
        assert line.x[0] == 1 and line.y[0] == found.tail.values_ms[0]
        assert line.x[-1] == pytest.approx(1 / 3_000) and line.y[-1] == found.tail.values_ms[-1]
        assert all(a >= b for a, b in zip(line.x, line.x[1:], strict=False))
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert list(points[0].marker.symbol) == ["circle"] * 3 + ["triangle-up"] * 2
    assert figure.layout.xaxis.type == "log" and "p99.9" in figure.layout.xaxis.ticktext
    assert "of,quantile,latency_ms,low_ms,high_ms" in figure.layout.meta["csv"]
    assert len(compare_tails(both[0].tail, both[1].tail, (0.5,)).figure().data) == 4
    assert both[0].figure().layout.meta["name"] == "tails"


def test_latency_over_time_shows_what_was_never_received(tmp_path):
    latencies = np.full(300, 25.0)
    latencies[[10, 11]] = np.nan
    latencies[200] = 900
    figure = over_time(probe(tmp_path, latencies)["probe_records"])
    received, never = figure.data
    assert len(received.x) == 298 and max(received.y) == 900
    assert np.round(never.x, 6).tolist() == [0.2, 0.22] and never.name == "never received"


def test_the_truth_of_the_simulation():
    """The autocorrelated series have the distribution that the tests of coverage say."""
    values = np.log(autocorrelated(np.random.default_rng(0), 200_000, 0.7))
    assert np.quantile(ndtr(values), [0.5, 0.9, 0.99]) == pytest.approx([0.5, 0.9, 0.99], abs=0.01)


def test_quantiles_of_no_quantile_are_refused():
    with pytest.raises(ParameterError, match=r"at is \(\); allowed: one quantile or more"):
        tails.quantiles(tails.of_values([np.arange(100.0)]), ())
