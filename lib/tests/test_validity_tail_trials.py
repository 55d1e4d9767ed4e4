"""The committed tables on repeated trials of latency, verdicts and knees: coverage, and that they can be made again."""

import json

import pytest
from simulations import knees, simulation, tail_trials, tail_verdicts

SIMULATIONS = {"knees": knees, "tail_trials": tail_trials, "tail_verdicts": tail_verdicts}
NOISE = 0.02
"""Of a share of 300 data sets: one and a half standard errors."""


def rows(subject, quantity, method=simulation.MAIN):
    table = simulation.read(subject)
    return table[(table.quantity == quantity) & (table.method == method)]


@pytest.mark.parametrize("subject", SIMULATIONS)
def test_the_committed_table_is_of_the_simulations_settings(subject):
    table = simulation.read(subject)
    assert set(table.setting) == {json.dumps(setting) for setting in SIMULATIONS[subject].SETTINGS}
    assert (table.data_sets == 300).all() and (table.seed == 0).all()


@pytest.mark.parametrize(("subject", "setting"), [("knees", 0), ("tail_trials", 0)])
def test_the_first_data_sets_give_what_the_committed_table_counts(subject, setting):
    settings = [SIMULATIONS[subject].SETTINGS[setting]]
    again = simulation.run(SIMULATIONS[subject], datasets=simulation.FIRST_DATASETS, settings=settings)
    both = simulation.compare_counts(simulation.read(subject), again)
    assert both.same.all(), both[~both.same].to_string()


def test_quantiles_of_trials_cover_where_records_taken_as_independent_do_not():
    assert rows("tail_trials", "p99").coverage.between(0.93 - NOISE, 0.97 + NOISE).all()
    assert (rows("tail_trials", "p99.9").coverage >= 0.93 - NOISE).all()
    assert (rows("tail_trials", "p99", tail_trials.INDEPENDENT).coverage < 0.3).all()


def test_verdicts_on_equal_systems_are_seldom_false_and_differences_are_found():
    assert (rows("tail_verdicts", "no difference claimed").coverage >= 0.95 - NOISE).all()
    alone = rows("tail_verdicts", "no difference claimed at p99", tail_verdicts.ALONE)
    assert (alone.coverage >= 0.95 - NOISE).all()
    assert (rows("tail_verdicts", "slower is not better or tied").coverage >= 0.95 - NOISE).all()
    assert rows("tail_verdicts", "slower is worse at p50").coverage.max() > 0.9


def test_a_second_runs_knee_falls_into_its_interval_more_often_than_kneedles():
    own, kneedle = rows("knees", "knee of a second run"), rows("knees", "knee of a second run", "Kneedle")
    assert (own.coverage >= 0.9).all() and own.coverage.mean() > 0.93 > kneedle.coverage.mean()
    assert (rows("knees", "rate within the objective").coverage >= 0.93).all()
    assert (rows("knees", "no knee where there is none").coverage > 0.95).all()
