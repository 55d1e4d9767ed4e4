"""The committed tables on slow series and on tails: their coverage, and that they can be made again."""

import json

import pytest
from simulations import simulation, slow, tails

SIMULATIONS = {"slow": slow, "tails": tails}


@pytest.mark.parametrize("subject", SIMULATIONS)
def test_the_committed_table_is_of_the_simulations_settings(subject):
    table = simulation.read(subject)
    assert set(table.setting) == {json.dumps(setting) for setting in SIMULATIONS[subject].SETTINGS}
    assert (table.data_sets >= 300).all()


@pytest.mark.parametrize(("subject", "setting"), [("slow", 5), ("tails", 6)])
def test_the_first_data_sets_give_what_the_committed_table_counts(subject, setting):
    settings = [SIMULATIONS[subject].SETTINGS[setting]]
    again = simulation.run(SIMULATIONS[subject], datasets=simulation.FIRST_DATASETS, settings=settings)
    both = simulation.compare_counts(simulation.read(subject), again)
    assert both.same.all(), both[~both.same].to_string()


def cautioned():
    table = simulation.read("slow")
    table = table[table.method == slow.QUIET]
    share = table.without_interval / table.data_sets
    return dict(zip(table.setting.map(simulation.describe), share, strict=True))


def test_slow_swings_are_cautioned_of_where_the_interval_does_not_hold_and_rarely_elsewhere():
    share = cautioned()
    table = simulation.read("slow")
    given = table[table.method == simulation.MAIN]
    coverage = dict(zip(given.setting.map(simulation.describe), given.coverage, strict=True))
    ordinary = [name for name in share if name.startswith(("independent", "AR(1) 0.6", "skewed"))]
    assert len(ordinary) == 4 and max(share[name] for name in ordinary) <= 0.1
    bad = [name for name, each in coverage.items() if each < 0.85]
    assert bad and min(share[name] for name in bad) >= 0.5


def test_tails_cover_but_where_runs_hold_no_burst():
    table = simulation.read("tails")
    given = table[table.method == simulation.MAIN].assign(setting=lambda rows: rows.setting.map(simulation.describe))
    few = given.setting.str.fullmatch("(rare bursts|bursts|slow load regimes), n 6000")
    assert (given.coverage[~few] >= 0.88).all() and (given.coverage[few] < 0.95).any()
    naive = table[table.method == tails.INDEPENDENT]
    assert (naive.coverage[naive.setting.str.contains("bursts|regimes")] < 0.8).all()
