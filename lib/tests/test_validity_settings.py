"""The simulations of settings against a baseline and of the scalability law, and their tables."""

import json

import pytest
from simulations import simulation

SUBJECTS = ("baseline", "scalability")


def coverage(subject, quantity, method=None, noisy=False):
    table = simulation.read(subject)
    rows = table[(table.quantity == quantity) & (table.setting.str.contains("noisy") == noisy)]
    return (rows if method is None else rows[rows.method == method]).coverage


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_committed_table_is_of_the_simulations_settings(subject):
    table, module = simulation.read(subject), simulation.simulations()[subject]
    assert set(table.setting) == {json.dumps(setting) for setting in module.SETTINGS}
    assert (table.data_sets == getattr(module, "DATASETS", simulation.DATASETS)).all() and (table.seed == 0).all()


def test_the_first_data_sets_give_what_the_committed_table_counts():
    for subject in SUBJECTS:
        module = simulation.simulations()[subject]
        again = simulation.run(module, datasets=simulation.FIRST_DATASETS, settings=[module.SETTINGS[1]])
        both = simulation.compare_counts(simulation.read(subject), again)
        assert both.same.all(), both[~both.same].to_string()


def test_ratios_to_a_baseline_cover_one_by_one_and_all_together():
    assert coverage("baseline", "all ratios together").between(0.93, 0.97).all()
    assert coverage("baseline", "one ratio", "t, pooled").between(0.93, 0.97).all()
    assert coverage("baseline", "no caution of unequal scatter").between(0.93, 0.97).all()


def test_pooling_fails_where_a_setting_scatters_more_and_that_is_often_cautioned():
    assert (coverage("baseline", "ratio of the last setting", "t, pooled", noisy=True) < 0.9).all()
    assert (coverage("baseline", "ratio of the last setting", "its own pairs", noisy=True) > 0.93).all()
    assert (coverage("baseline", "no caution of unequal scatter", noisy=True) < 0.6).all()


def test_the_law_covers_inside_and_is_wide_at_its_bounds():
    table = simulation.read("scalability")
    assert (table.coverage >= 0.92).all()
    inside = table[table.setting.str.contains('"beta": 0.002')]
    assert inside.coverage.between(0.92, 0.98).all()
