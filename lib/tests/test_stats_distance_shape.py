"""Which line throughput follows: scores against statsmodels and plain loops, and surveys whose answer is known."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.regions.pairs import Sample
from wanbench.pages.intercloud_2022 import shape

PAIRS = simulated_surveys.survey(14, seed=1, intercept_ms=5, pair_ms=2)


def throughput(pairs, follows, seed=0, spread=0.2):
    """Throughput that follows one of the lines exactly, but for noise of each ordered pair."""
    x = {
        "distance": pairs.distance_km / 1000 * 0.12,
        "log distance": 0.9 * np.log10(pairs.distance_km),
        "log RTT": 1.0 * np.log10(pairs.rtt_ms),
    }[follows]
    noise = np.random.default_rng(seed).normal(0, spread, len(pairs))
    return pairs.assign(throughput_bps=10 ** (10 - x + noise))


@pytest.mark.parametrize("follows", ["distance", "log distance", "log RTT"])
def test_the_line_that_made_the_data_is_found(follows):
    pairs = simulated_surveys.survey(24, seed=2, intercept_ms=60, pair_ms=0.1, region_ms=9)
    found = shape.compare_shapes(throughput(pairs, follows, spread=0.03))
    assert found.best == follows and found.decided
    assert f"Log throughput follows {follows} best" in str(found) and "AIC also puts" in str(found)
    assert all(each.low > 1 for (_, better), each in found.ratios.items() if better == follows)
    slope = found.lines.set_index("line").slope[follows]
    assert slope == pytest.approx({"distance": -0.12, "log distance": -0.9, "log RTT": -1.0}[follows], rel=0.05)


def test_where_lines_hardly_differ_the_data_do_not_tell():
    pairs = simulated_surveys.survey(8, seed=3, intercept_ms=0.5, pair_ms=0.01)
    found = shape.compare_shapes(throughput(pairs, "log distance", spread=0.6))
    assert not found.decided
    assert str(found).startswith("The data do not tell whether ")
    assert any("which may be chance" in str(each) for each in found.ratios.values())


def test_scores_are_those_of_fits_one_by_one():
    found = shape.compare_shapes(PAIRS)
    frame = found.pairs
    y = np.log10(frame.throughput_bps)
    for name, x in (
        ("distance", frame.distance_km / 1000),
        ("log distance", np.log10(frame.distance_km)),
        ("log RTT", np.log10(frame.rtt_ms)),
    ):
        peer = sm.OLS(y, sm.add_constant(x.to_numpy())).fit()
        line = found.lines.set_index("line").loc[name]
        np.testing.assert_allclose([line.intercept, line.slope], peer.params, rtol=1e-7)
        assert line.r_squared == pytest.approx(peer.rsquared)
        others = shape.compare_shapes(PAIRS).lines.set_index("line")
        gap = peer.aic - sm.OLS(y, sm.add_constant((frame.distance_km / 1000).to_numpy())).fit().aic
        assert line.aic - others.aic["distance"] == pytest.approx(gap, abs=1e-6)
        squares = np.zeros(len(frame))
        for region in sorted({*frame.region_a, *frame.region_b}):
            out = ((frame.region_a == region) | (frame.region_b == region)).to_numpy()
            slope, height = np.polyfit(x[~out], y[~out], 1)
            squares[out] += (y[out] - height - slope * x[out]) ** 2 / 2
        assert found.errors[name].estimate == pytest.approx(10 ** np.sqrt(squares.mean()))


def test_intervals_of_equally_good_lines_cover_where_naive_ones_fail():
    """Two predictors that carry the same: the ratio of their errors is 1 in the long run."""
    hits, naive, n = 0, 0, 20
    first, second = np.triu_indices(n, 1)
    names = [f"a:{k:02d}" for k in range(n)]
    ends = {"region_a": [names[k] for k in first], "region_b": [names[k] for k in second]}
    frame = pd.DataFrame(ends)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        place, effect = rng.uniform(size=(2, n)), rng.normal(0, 0.1, n)
        near = np.abs(place[:, first] - place[:, second])
        y = near.sum(axis=0) + effect[first] + effect[second] + rng.normal(0, 0.1, len(first))
        sample = Sample("x", frame, frame.iloc[:0])
        squares = {name: shape._score(x, y, sample)[1] for name, x in zip("ab", near, strict=True)}
        texts = {"quantity": "ratio", "claim": "{}", "unit": "times"}
        ratio = shape._estimate({"a": 0.5, "b": -0.5}, squares, sample, (), change=np.exp, **texts)
        hits += ratio.low <= 1 <= ratio.high
        naive += ratio.naive.low <= 1 <= ratio.naive.high
    assert hits >= 0.86 * 60
    assert naive <= 0.8 * 60


def test_near_pairs_and_pairs_without_rtt_are_counted(monkeypatch):
    pairs = PAIRS.assign(rtt_ms=PAIRS.rtt_ms.mask(PAIRS.from_region == PAIRS.from_region[0]))
    minimum = PAIRS.distance_km.quantile(0.2)
    monkeypatch.setattr(shape, "NEAREST_KM", minimum)
    found = shape.compare_shapes(pairs)
    message = str(found.errors["distance"])
    near = int((PAIRS.distance_km < minimum).sum() / 2)
    assert f"{near} pairs nearer than" in message and "without rtt_ms" in message
    assert 2 * (len(found.pairs) + near) == len(PAIRS)


def test_too_little_is_refused():
    with pytest.raises(ParameterError, match="at least 4 regions"):
        shape.compare_shapes(simulated_surveys.survey(3, seed=1))
    star = PAIRS[(PAIRS.from_region == PAIRS.from_region[0]) | (PAIRS.to_region == PAIRS.from_region[0])]
    with pytest.raises(ParameterError, match="without aws:region-000: the pairs are too few"):
        shape.compare_shapes(star)


def test_every_line_is_in_the_tables():
    found = shape.compare_shapes(PAIRS)
    assert len(found.table()) == 6 and "AIC" in found._repr_html_()
