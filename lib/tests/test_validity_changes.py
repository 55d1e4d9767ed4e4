"""The simulated pair-years: the committed counts, what is promised of them, and their own truth."""

import json

import pytest
from simulations import changes, pair_years, simulation

from wanbench.pages.over_time.pair_changes import FALSE_PER_YEAR


def rows(measure, quantity):
    table = simulation.read("changes")
    return table[(table.setting == json.dumps({"measure": measure})) & (table.quantity == quantity)].iloc[0]


def test_the_first_pair_years_give_what_the_committed_table_counts():
    again = simulation.run(changes, datasets=simulation.FIRST_DATASETS)
    both = simulation.compare_counts(simulation.read("changes"), again)
    assert both.same.all(), both[~both.same].to_string()


def test_false_alarms_and_found_changes_are_as_promised():
    assert rows("rtt_ms", "at most 1 false alarms in a year").coverage == 1
    assert rows("rtt_ms", "a change of 5 % found").coverage >= 0.9
    assert rows("rtt_ms", "ratio of levels").coverage > 0.9


@pytest.mark.parametrize("measure", FALSE_PER_YEAR)
def test_the_page_states_the_rate_that_was_counted(measure):
    assert rows(measure, "at most 1 false alarms in a year").coverage == 1  # so that a year has none or one
    none = rows(measure, "at most 0 false alarms in a year").coverage
    assert FALSE_PER_YEAR[measure] == pytest.approx(1 - none)


def test_a_pair_year_has_gaps_and_repeats_by_its_seed():
    tests, planted = pair_years.pair_year(1)
    again, _ = pair_years.pair_year(1)
    assert tests.equals(again) and 600 < len(tests) < 730 and planted and not pair_years.pair_year(2)[1]
    assert pair_years.score([at for at, _ in planted], planted)["false_alarms"] == 0
