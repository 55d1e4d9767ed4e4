"""The simulation of paired trials and factorial effects, and its committed table."""

import json

import pytest
from simulations import simulation, trials


@pytest.fixture(scope="module")
def table():
    return simulation.read("trials")


def coverage(table, quantity, method=None):
    rows = table[table.quantity == quantity]
    return (rows if method is None else rows[rows.method == method]).coverage


def test_the_committed_table_is_of_the_simulations_settings(table):
    assert set(table.setting) == {json.dumps(setting) for setting in trials.SETTINGS}
    assert (table.data_sets >= 1000).all() and (table.seed == 0).all() and (table.without_interval == 0).all()


@pytest.mark.parametrize("number", [1, 6])
def test_the_first_data_sets_give_what_the_committed_table_counts(table, number):
    again = simulation.run(trials, datasets=simulation.FIRST_DATASETS, settings=[trials.SETTINGS[number]])
    both = simulation.compare_counts(table, again)
    assert both.same.all(), both[~both.same].to_string()


def test_trials_cover_where_seconds_do_not(table):
    assert (coverage(table, "ratio of two links", "trials in pairs") >= 0.93).all()
    assert (coverage(table, "ratio of two links", "seconds as independent") < 0.9).all()


def test_effects_cover_one_by_one_and_all_together(table):
    for quantity in ("elasticity", "effect of two levels", "gain at one place"):
        assert coverage(table, quantity).between(0.93, 1).all()
    plain = table[~table.setting.str.contains("bent|noisy") & (table.quantity == "elasticity")]
    assert plain.coverage.between(0.93, 0.98).all()
    assert (coverage(table, "gain at all places together") >= 0.93).all()
