"""Factorial experiments with factors of two levels, fractions, maps of the space."""

from itertools import combinations

import numpy as np
import pytest

from wanbench.designs import factorial
from wanbench.errors import ParameterError
from wanbench.methods.factorial.inference import critical
from wanbench.pages.private_vs_internet.fit import alias_table, fit_factorial

SIX = {
    "delay_ms": [10.0, 60.0],
    "jitter_ms": [0.0, 10.0],
    "loss": [0.0, 0.001],
    "rate_bps": [40e6, 400e6],
    "acks": ["1", "all"],
    "batch_bytes": [16_384.0, 131_072.0],
}
SLOPES = {"delay_ms": -0.6, "rate_bps": 0.5, "batch_bytes": -0.2}
STEPS = {"jitter_ms": -0.1, "loss": -0.5, "acks": -0.25}
TOGETHER = {("delay_ms", "rate_bps"): -0.15, ("delay_ms", "acks"): -0.1, ("loss", "acks"): 0.2}
HALF = {"batch_bytes": ["delay_ms", "jitter_ms", "loss", "rate_bps", "acks"]}
QUARTER = {"acks": ["delay_ms", "jitter_ms", "loss"], "batch_bytes": ["jitter_ms", "loss", "rate_bps"]}
WITH_ZERO = ["jitter_ms", "loss"]


def codes(frame):
    found = {}
    for name, levels in SIX.items():
        if name in SLOPES:
            found[name] = np.log(frame[name].astype(float)) - np.log(levels).mean()
        else:
            found[name] = np.where(frame[name] == levels[1], 0.5, -0.5)
    return found


def measured(seed=0, *, fraction=None, replicates=1, noise=0.05, together=TOGETHER):
    plan = factorial(SIX, fraction=fraction, replicates=replicates, seed=seed)
    code = codes(plan)
    level = 4 + sum(slope * code[name] for name, slope in (SLOPES | STEPS).items())
    level = level + sum(size * code[a] * code[b] for (a, b), size in together.items())
    rng = np.random.default_rng(seed)
    return plan.assign(batches_per_s=np.exp(level + rng.normal(0, noise, len(plan))))


def fitted(frame, **settings):
    settings = {"contrasts": WITH_ZERO} | settings
    return fit_factorial(frame, "batches_per_s", list(SIX), **settings)


def test_effects_of_two_levels_are_ratios():
    found = fitted(measured())
    assert list(found.effects) == ["jitter_ms", "loss", "acks"]
    assert list(found.doublings) == ["delay_ms", "rate_bps", "batch_bytes"]
    for name, size in STEPS.items():
        each = found.effects[name]
        assert each.low < np.exp(size) < each.high and each.unit == "times"
    assert "With acks all, batches per second is" in str(found) and "the value with acks 1" in str(found)
    crossed = found.interactions
    assert crossed["delay_ms", "acks"].low < -0.1 < crossed["delay_ms", "acks"].high
    assert crossed["loss", "acks"].low < np.exp(0.2) < crossed["loss", "acks"].high
    assert "from acks 1 to all" in crossed["delay_ms", "acks"].claim


def test_a_contrast_is_the_mean_log_ratio():
    frame = measured(1)
    each = fitted(frame, interactions=()).effects["acks"]
    logs = np.log(frame.batches_per_s).groupby(frame.acks).mean()
    assert each.estimate == pytest.approx(np.exp(logs["all"] - logs["1"]))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"contrasts": ["loss"]}, "jitter_ms has the level 0"),
        ({"contrasts": [*WITH_ZERO, "speed"]}, "contrast is 'speed'; allowed: 'delay_ms'"),
        ({"interactions": "some"}, "interactions is 'some'; allowed: 'all', or"),
        ({"interactions": [("loss",)]}, "different tuples of two or more"),
    ],
)
def test_wrong_factors_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        fitted(measured(), **settings)


def test_three_levels_are_no_contrast():
    frame = measured()
    frame.loc[0, "acks"] = "0"
    with pytest.raises(ParameterError, match="acks has the levels 0, 1, all"):
        fitted(frame)


def test_triple_interactions_can_be_fitted():
    frame = measured(3, noise=0.02)
    code = codes(frame)
    bent = np.exp(0.2 * code["delay_ms"] * code["rate_bps"] * code["acks"])
    every = [*combinations(SIX, 2), *combinations(SIX, 3)]
    found = fitted(frame.assign(batches_per_s=frame.batches_per_s * bent), interactions=every)
    each = found.interactions["delay_ms", "rate_bps", "acks"]
    assert each.low < 0.2 < each.high and each.low > 0
    gains = found.combinations.groupby("acks").gain.agg(np.ptp)
    assert gains["1"] != pytest.approx(gains["all"], rel=0.05)


def test_a_half_of_resolution_six_tells_all_pairs_apart():
    found = fitted(measured(4, fraction=HALF, replicates=2), block="replicate")
    assert "fraction" not in str(found)
    assert len(found.combinations) == 32 and len(found.grid) == 16 * 49
    assert found.elasticities["delay_ms"].low < -0.6 < found.elasticities["delay_ms"].high


def test_a_quarter_says_what_it_cannot_tell_apart():
    frame = measured(5, fraction=QUARTER, replicates=2)
    with pytest.raises(ParameterError, match="delay_ms:jitter_ms = loss:acks"):
        fitted(frame, interactions="all")
    found = fitted(frame, interactions=[("delay_ms", "rate_bps")])
    assert "main effects are confounded" in str(found)
    aliases = alias_table(frame, list(SIX)).set_index("effect").aliased_with
    assert "loss:acks" in aliases["delay_ms:jitter_ms"]
    mains = aliases[list(SIX)]
    assert all(each.count(":") == 2 for row in mains for each in row.split(", "))


def test_aliases_are_read_off_the_runs():
    plan = factorial(SIX, replicates=1, fraction=QUARTER)
    assert (alias_table(factorial(SIX, replicates=1), list(SIX)).aliased_with == "").all()
    signs = {name: np.where(plan[name] == levels[1], 1, -1) for name, levels in SIX.items()}
    for row in alias_table(plan, list(SIX)).itertuples():
        own = np.prod([signs[name] for name in row.effect.split(":")], axis=0)
        for other in filter(None, row.aliased_with.split(", ")):
            names = other.lstrip("-").split(":")
            product = np.prod([signs[name] for name in names], axis=0)
            np.testing.assert_array_equal(product, -own if other.startswith("-") else own)
    with pytest.raises(ParameterError, match="runs lacks column speed"):
        alias_table(plan, ["speed"])


def test_the_thesis_holds_and_fails_where_it_should():
    found = fitted(measured(6, noise=0.01, replicates=2))
    code = codes(found.grid)
    delay = -0.6 - 0.15 * code["rate_bps"] - 0.1 * code["acks"]
    rate = 0.5 - 0.15 * code["delay_ms"]
    truth = 2 ** (-delay - rate)
    assert ((found.grid.low <= truth) & (truth <= found.grid.high)).all()
    assert (found.grid.verdict[truth > 1.1] == "holds").all()
    assert (found.grid.verdict[truth < 0.9] == "fails").all() and (truth < 0.9).any()
    failing = found.grid[found.grid.verdict == "fails"]
    assert failing.delay_ms.max() < 60 and failing.rate_bps.max() < 400e6


def test_intervals_of_the_whole_space_hold_together():
    inside = 0
    for seed in range(12):
        space = fitted(measured(seed, together={}, replicates=2, fraction=HALF), block="replicate").grid
        truth = 2 ** (0.6 - 0.5)
        inside += bool(((space.low <= truth) & (truth <= space.high)).all())
    assert inside >= 10


def test_a_critical_value_lies_between_one_interval_and_scheffe():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 5))
    found = critical(rows, np.eye(5), 20, 0.95)
    assert 2.09 < found < 3.68
    independent = critical(np.eye(5), np.eye(5), 10_000, 0.95)
    assert independent == pytest.approx(2.57, abs=0.06)  # normal quantile of 1 - (1 - 0.95^(1/5)) / 2


def test_the_map_shows_the_space():
    found = fitted(measured(8, replicates=2))
    drawn = found.map()
    heat = [trace for trace in drawn.data if trace.type == "heatmap"]
    assert len(heat) == 4 and all(np.asarray(trace.z).shape == (7, 7) for trace in heat)
    shown = found.grid[(found.grid.loss == 0) & (found.grid.jitter_ms == 0)]
    crosses = sum(len(trace.x) for trace in drawn.data if trace.type == "scatter")
    assert crosses == (shown.verdict == "undecided").sum()
    assert drawn.layout.meta["caption"] == found.shares_sentence()
    with pytest.raises(ParameterError, match="no map"):
        fitted(measured(8), delay="latency").map()


def test_the_first_figure_shows_effects_too():
    found = fitted(measured(9))
    drawn = found.figure()
    expected = [each.estimate for each in (*found.doublings.values(), *found.effects.values())]
    assert list(drawn.data[0].x) == expected
    assert drawn.layout.yaxis.ticktext[-1] == "acks all over 1"
