"""What a tail says in sentences, and what its percentile plot shows."""

from math import inf, isinf, isnan

import numpy as np
import pytest
from simulations.latency_samples import of_values

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.quantiles import compare_tails, percentile_plot, quantiles


def test_a_result_is_shown_as_its_sentence():
    tail = of_values([np.random.default_rng(0).lognormal(3, 0.3, 20_000)], "it")
    found = quantiles(tail, (0.5,))
    assert repr(found) == str(found) == found.sentence
    start = "Latency of “it” (20,000 records, 95 % intervals): p50 "
    assert str(found) == f"{start}{found[0.5].formatted} ({found[0.5].formatted_interval})."
    assert found.finding("tail").estimate == pytest.approx(found[0.5].estimate, rel=1e-5)
    assert repr(tail) == f"Latency of it: 20,000 records, p50 {tail.quantile(0.5):.1f} ms"
    assert repr(compare_tails(tail, tail, (0.5,))).startswith("“it” and “it” do not differ")


def test_too_few_records_for_a_quantile_are_said_to_be():
    tail = of_values([np.random.default_rng(0).permutation(1_000) + 1.0], "it")
    found = quantiles(tail, (0.5, 0.999))
    assert found[0.5].estimate == 500 and not found[0.5].warnings
    assert isinf(found[0.999].high) and found[0.999].formatted_interval.startswith("at least")
    [warning] = found[0.999].warnings
    assert "p99.9 of it has no upper end: 1,000 records are too few; it needs 3,688" in warning
    assert found[0.999].finding("tail-p999").estimate == 999


def test_records_that_never_came_are_slower_than_all():
    values = np.arange(1.0, 1001.0)
    values[::50] = inf
    found = quantiles(of_values([values], "it"), (0.5, 0.98, 0.99))
    assert found.tail.n_lost == 20 and found.tail.n == 1_000
    assert found[0.5].estimate == 511 and found[0.98].estimate == 1000
    assert isnan(found[0.99].estimate) and "20 records of 1,000 never arrived" in str(found[0.99])
    assert isinf(found[0.98].high)


def test_a_quantile_is_the_smallest_that_the_share_does_not_exceed():
    tail = of_values([np.array([1.0, 1.0, 1.0, 7.0])])
    assert [tail.quantile(q) for q in (0.25, 0.75, 0.76)] == [1, 1, 7]


def test_the_percentile_plot_shows_each_distribution_and_its_intervals():
    rng = np.random.default_rng(12)
    both = [quantiles(of_values([rng.lognormal(3, s, 3_000)], f"<{s}>")) for s in (0.2, 0.4)]
    figure = percentile_plot(both)
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


def test_quantiles_of_no_quantile_are_refused():
    with pytest.raises(ParameterError, match=r"at is \(\); allowed: one quantile or more"):
        quantiles(of_values([np.arange(100.0)]), ())
