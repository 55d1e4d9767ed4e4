"""Trials that vary several settings together: their plan, and the surface of made trials with a known best."""

import numpy as np
import pytest
from geo_trials import one_at_a_time, rates, trial

from wanbench import designs
from wanbench.designs import Range
from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.pages.geo_kafka import curves, together
from wanbench.pages.geo_kafka.design import together as planned

SPACE = {
    "batch_bytes": Range(16_384, 262_144, log=True, whole=True),
    "producers": Range(1, 9, log=True, whole=True),
    "compression": ["none", "lz4"],
}


def made(runs=16, noise=0.03, seed=1):
    """Throughput is highest at 65,536 bytes, grows with producers, and doubles with lz4."""
    rng, rows = np.random.default_rng(seed), []
    for row in designs.space_filling(SPACE, runs, seed).to_dict("records"):
        log = -0.5 * (np.log2(row["batch_bytes"] / 65_536) / 2) ** 2 + 0.3 * np.log(row["producers"])
        log += np.log(2) * (row["compression"] == "lz4")
        levels = {name: row[name] for name in SPACE}
        rows.append(trial("together", 4e7 * np.exp(log + rng.normal(0, noise)), block=None, **levels))
    return rows


def test_the_surface_finds_the_best_setting_and_the_effects():
    found = together(rates(made()))
    assert set(found.best_setting) == set(SPACE) and found.best_setting["compression"] == "lz4"
    assert 40_000 < found.best_setting["batch_bytes"] < 110_000 and found.best_setting["producers"] > 6
    best = 4e7 * 2 * 9**0.3
    assert found.best.low < best < found.best.high and found.best.unit == "bit/s"
    assert found.effects["compression"].estimate in (pytest.approx(2, rel=0.1), pytest.approx(0.5, rel=0.1))
    assert "The fitted throughput is highest at" in found.sentence and "Mbit/s" in found.sentence
    assert len(found.figure().layout.annotations) == 3


def test_curves_do_not_use_them():
    rows = one_at_a_time({("partitions", 18): 1.5})
    alone, both = curves(rates(rows)), curves(rates(rows + made()))
    assert alone.of("partitions").range == both.of("partitions").range
    assert "20 trials without a throughput or a block not used" in str(both)


def test_without_such_trials_or_with_too_few_the_section_has_nothing_to_show():
    with pytest.raises(MissingDataError, match="no trial has the setting 'together'"):
        together(rates(one_at_a_time({})))
    with pytest.raises(MissingDataError, match="do not determine a surface"):
        together(rates(made(runs=2)))


def test_the_plan_fills_the_ranges_around_the_baseline():
    baseline = KafkaTrial(KafkaLoad(acks="all"))
    trials = planned(baseline, SPACE, 16, seed=3)
    loads = [one.experiments[0].load for one in trials]
    assert len(trials) == 20 and {(one.setting, one.block) for one in trials} == {("together", None)}
    assert {load.compression for load in loads} == {"none", "lz4"} and {load.acks for load in loads} == {"all"}
    assert min(load.batch_bytes for load in loads) >= 16_384 and max(load.producers for load in loads) <= 9
    assert all(isinstance(load.producers, int) for load in loads)
    assert len(planned(baseline, {"producers": SPACE["producers"]}, 4)) == 8
    assert planned(baseline, SPACE, 0) == []
    with pytest.raises(ParameterError, match="runs"):
        planned(baseline, SPACE, -1)
