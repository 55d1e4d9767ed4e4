"""The simulation of settings against a baseline, and its table."""

import json

from simulations import simulation


def coverage(quantity, method=None, noisy=False):
    table = simulation.read("baseline")
    rows = table[(table.quantity == quantity) & (table.setting.str.contains("noisy") == noisy)]
    return (rows if method is None else rows[rows.method == method]).coverage


def test_the_committed_table_is_of_the_simulations_settings():
    table, module = simulation.read("baseline"), simulation.simulations()["baseline"]
    assert set(table.setting) == {json.dumps(setting) for setting in module.SETTINGS}
    assert (table.data_sets == getattr(module, "DATASETS", simulation.DATASETS)).all() and (table.seed == 0).all()


def test_the_first_data_sets_give_what_the_committed_table_counts():
    module = simulation.simulations()["baseline"]
    again = simulation.run(module, datasets=simulation.FIRST_DATASETS, settings=[module.SETTINGS[1]])
    both = simulation.compare_counts(simulation.read("baseline"), again)
    assert both.same.all(), both[~both.same].to_string()


def test_ratios_to_a_baseline_cover_one_by_one_and_all_together():
    assert coverage("all ratios together").between(0.93, 0.97).all()
    assert coverage("one ratio", "t, pooled").between(0.93, 0.97).all()
    assert coverage("no caution of unequal scatter").between(0.93, 0.97).all()


def test_pooling_fails_where_a_setting_scatters_more_and_that_is_often_cautioned():
    assert (coverage("ratio of the last setting", "t, pooled", noisy=True) < 0.9).all()
    assert (coverage("ratio of the last setting", "its own pairs", noisy=True) > 0.93).all()
    assert (coverage("no caution of unequal scatter", noisy=True) < 0.6).all()
