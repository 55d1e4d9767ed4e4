"""The committed table on tails: its coverage, and that it can be made again."""

import json

from simulations import simulation, tails


def test_the_committed_table_is_of_the_simulations_settings():
    table = simulation.read("tails")
    assert set(table.setting) == {json.dumps(setting) for setting in tails.SETTINGS}
    assert (table.data_sets >= 300).all()


def test_the_first_data_sets_give_what_the_committed_table_counts():
    again = simulation.run(tails, datasets=simulation.FIRST_DATASETS, settings=[tails.SETTINGS[6]])
    both = simulation.compare_counts(simulation.read("tails"), again)
    assert both.same.all(), both[~both.same].to_string()


def test_tails_cover_but_where_runs_hold_no_burst():
    table = simulation.read("tails")
    given = table[table.method == simulation.MAIN].assign(setting=lambda rows: rows.setting.map(simulation.describe))
    few = given.setting.str.fullmatch("(rare bursts|bursts|slow load regimes), n 6000")
    assert (given.coverage[~few] >= 0.88).all() and (given.coverage[few] < 0.95).any()
    naive = table[table.method == tails.INDEPENDENT]
    assert (naive.coverage[naive.setting.str.contains("bursts|regimes")] < 0.8).all()
