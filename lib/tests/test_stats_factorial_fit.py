"""Factorial experiments with known elasticities."""

from itertools import combinations

import numpy as np
import pytest
import statsmodels.formula.api as smf

from wanbench.designs import factorial as design
from wanbench.errors import ParameterError
from wanbench.pages.private_vs_internet.fit import fit_factorial

FACTORS = {"delay_ms": [5, 20, 80], "loss": [1e-4, 1e-3], "rate_bps": [1e7, 1e8]}
TRUE = {"delay_ms": -0.6, "loss": -0.3, "rate_bps": 0.4}
CROSSED = 0.1


def measured(seed=0, *, replicates=4, noise=0.1, crossed=CROSSED, factors=FACTORS):
    """log T = constant + elasticities + an interaction of delay and rate, and a draw per run."""
    rng = np.random.default_rng(seed)
    plan = design(factors, replicates=replicates, seed=seed)
    logs = np.log(plan[list(factors)])
    centred = logs - (logs.min() + logs.max()) / 2
    mean = 17 + sum(TRUE[name] * centred[name] for name in factors)
    mean = mean + crossed * centred.delay_ms * centred.rate_bps + rng.normal(0, noise, len(plan))
    return plan.assign(throughput_bps=np.exp(mean + rng.normal(0, 0.02, len(plan))))


def fitted(frame, **settings):
    return fit_factorial(frame, "throughput_bps", list(FACTORS), **settings)


def test_known_elasticities_are_recovered():
    found = fitted(measured())
    for name, truth in TRUE.items():
        each = found.elasticities[name]
        assert each.low < truth < each.high and abs(each.estimate - truth) < 0.06
        assert found.doublings[name].estimate == pytest.approx(2**each.estimate)
    both = found.elasticities["delay_ms"].estimate + found.elasticities["rate_bps"].estimate
    assert found.thesis.estimate == pytest.approx(2**-both)
    crossed = found.interactions["delay_ms", "rate_bps"]
    assert crossed.low < CROSSED < crossed.high and crossed.low > 0
    assert found.interactions["delay_ms", "loss"].low < 0 < found.interactions["delay_ms", "loss"].high
    assert found.lack_of_fit_p > 0.01 and not found.estimates[0].warnings
    assert "48 runs at 12 combinations" in str(found)


def test_it_equals_statsmodels():
    frame = measured(3)
    found = fitted(frame, interactions=[("delay_ms", "rate_bps")], block="replicate")
    logs = np.log(frame[list(FACTORS)])
    centred = logs - (logs.min() + logs.max()) / 2
    frame = centred.assign(y=np.log(frame.throughput_bps), replicate=frame.replicate)
    peer = smf.ols("y ~ delay_ms + loss + rate_bps + delay_ms:rate_bps + C(replicate)", frame).fit()
    assert found.elasticities["delay_ms"].estimate == pytest.approx(peer.params["delay_ms"], rel=1e-8)
    crossed = found.interactions["delay_ms", "rate_bps"].estimate
    assert crossed == pytest.approx(peer.params["delay_ms:rate_bps"], rel=1e-8)


def test_the_thesis_holds_where_it_should_and_fails_where_it_should():
    found = fitted(measured(1, noise=0.02, replicates=6))
    places = found.combinations
    logs = np.log(places[list(FACTORS)])
    centred = logs - (logs.min() + logs.max()) / 2
    delay = TRUE["delay_ms"] + CROSSED * centred.rate_bps
    rate = TRUE["rate_bps"] + CROSSED * centred.delay_ms
    truth = 2 ** (-delay - rate)
    assert ((places.low <= truth) & (truth <= places.high)).all()
    assert (places.verdict[truth > 1.05] == "holds").all() and (places.verdict[truth < 0.95] == "fails").all()
    assert {"holds", "fails"} <= set(places.verdict)
    assert (
        "Halving the delay gains more than doubling the rate in" in found.verdict()
        and "are undecided" in found.verdict()
    )


def test_intervals_of_all_places_hold_together():
    inside = 0
    for seed in range(12):
        places = fitted(measured(seed, crossed=0.0, replicates=2)).combinations
        truth = 2 ** (-TRUE["delay_ms"] - TRUE["rate_bps"])
        inside += bool(((places.low <= truth) & (truth <= places.high)).all())
    assert inside >= 10


def test_a_bend_is_noticed():
    frame = measured(2, noise=0.01)
    bent = frame.assign(throughput_bps=np.minimum(frame.throughput_bps, frame.throughput_bps.median()))
    found = fitted(bent)
    assert found.lack_of_fit_p < 0.001 and "does not fit" in str(found)
    assert "measured once" in str(fitted(measured(4, replicates=1)))


def test_a_level_of_zero_has_no_logarithm():
    frame = measured(5)
    zero = frame.assign(loss=frame.loss.where(frame.loss > 1e-4, 0.0))
    with pytest.raises(ParameterError, match="loss has the level 0"):
        fitted(zero)
    assert fitted(zero, contrasts=["loss"]).effects["loss"].estimate < 1


def test_left_out_rows_are_counted():
    frame = measured(6)
    frame.loc[[0, 5], "throughput_bps"] = [np.nan, 0.0]
    assert "2 rows left out" in str(fitted(frame))


@pytest.mark.parametrize("empty", [np.nan, None, 0.0, np.inf])
def test_a_response_that_nobody_measured_is_named(empty):
    frame = measured(6, replicates=1)
    why = r"12 (where throughput_bps is not a positive number|without throughput_bps)"
    with pytest.raises(ParameterError, match=rf"no row is left of 12 rows: {why}"):
        fitted(frame.assign(throughput_bps=empty))
    with pytest.raises(ParameterError, match=r"loss has one level only in the rows in use; 2 levels with those left"):
        fitted(frame.assign(throughput_bps=frame.throughput_bps.where(frame.loss > 5e-4, empty)))


def test_wrong_questions_are_refused():
    frame = measured(7, replicates=1)
    with pytest.raises(ParameterError, match="observations lacks column nothing"):
        fit_factorial(frame, "throughput_bps", ["nothing"])
    with pytest.raises(ParameterError, match="one level only"):
        fitted(frame[frame.loss < 5e-4])
    with pytest.raises(ParameterError, match="interactions"):
        fitted(frame, interactions=[("delay_ms", "delay_ms")])
    with pytest.raises(ParameterError, match="at least 2 runs more"):
        fitted(frame.head(8), interactions="all")


def test_the_figure_carries_both_parts():
    found = fitted(measured())
    drawn = found.figure()
    assert list(drawn.data[0].x) == [each.estimate for each in found.doublings.values()]
    assert sum(len(trace.x) for trace in drawn.data[1:]) == len(found.combinations)
    assert drawn.layout.meta["csv"].startswith("delay_ms,loss,rate_bps")
    without = fitted(measured(), delay="latency").figure()
    assert len(without.data) == 1


def test_the_finding_of_places_says_what_they_rest_on():
    """Throughput is the minimum of a window and a rate, which no product of two factors follows."""
    levels = {"delay_ms": [10.0, 40.0], "rate_bps": [1e7, 1e8], "batch_bytes": [16_384.0, 131_072.0]}
    plan = design(levels, replicates=3, seed=1)
    noise = np.exp(np.random.default_rng(1).normal(0, 0.02, len(plan)))
    window = 5 * plan.batch_bytes / (2 * plan.delay_ms / 1000)
    runs = plan.assign(batches_per_s=np.minimum(window, plan.rate_bps / 8) / plan.batch_bytes * noise)
    bent = fit_factorial(runs, "batches_per_s", [*levels])
    whole = fit_factorial(runs, "batches_per_s", [*levels], interactions=[*combinations(levels, 2), tuple(levels)])
    line = "two levels of delay and of rate cannot show curvature"
    assert bent.lack_of_fit_p < 0.01 and "does not fit" in str(bent.finding("where"))
    assert not whole.lack_of_fit_p < 0.01 and "does not fit" not in str(whole.finding("where"))
    assert all(line in text for text in (str(whole.finding("where")), str(whole), whole._repr_html_()))
    runs = runs.assign(delay_ms=np.where(runs.index % 2, runs.delay_ms, 20.0))
    assert "two levels of rate cannot" in str(fit_factorial(runs, "batches_per_s", [*levels]).finding("where"))


@pytest.mark.parametrize("seed", range(4))
def test_no_interval_of_runs_measured_once_is_narrower_than_that_of_pooled_scatter(seed):
    """With one run a combination, few residuals make the robust variance, and it may be small by chance."""
    frame = measured(seed, replicates=1, factors={name: levels[:2] for name, levels in FACTORS.items()})
    found = fitted(frame, interactions=[("delay_ms", "rate_bps")])
    logs = np.log(frame[list(FACTORS)])
    frame = (logs - (logs.min() + logs.max()) / 2).assign(y=np.log(frame.throughput_bps))
    peer = smf.ols("y ~ delay_ms + loss + rate_bps + delay_ms:rate_bps", frame).fit()
    pooled = peer.conf_int()
    for name, each in found.elasticities.items():
        assert each.low <= pooled.loc[name, 0] + 1e-9 and each.high >= pooled.loc[name, 1] - 1e-9
    apart = peer.t_test("-delay_ms - rate_bps").conf_int()[0]
    assert found.thesis.low <= 2 ** apart[0] + 1e-9 and found.thesis.high >= 2 ** apart[1] - 1e-9
