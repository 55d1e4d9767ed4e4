"""The committed tables on slow series and on tails: their coverage, and that they can be made again."""

import json

import pytest

from wanbench.validity import slow, study, tails

STUDIES = {"slow": slow, "tails": tails}


@pytest.mark.parametrize("subject", STUDIES)
def test_the_committed_table_is_of_the_studys_settings(subject):
    table = study.read(subject)
    assert set(table.setting) == {json.dumps(setting) for setting in STUDIES[subject].SETTINGS}
    assert (table.data_sets >= 300).all()


@pytest.mark.parametrize(("subject", "setting"), [("slow", 5), ("tails", 6)])
def test_the_first_data_sets_give_what_the_committed_table_counts(subject, setting):
    settings = [STUDIES[subject].SETTINGS[setting]]
    again = study.run(STUDIES[subject], datasets=study.FIRST_DATASETS, settings=settings)
    both = study.compare_counts(study.read(subject), again)
    assert both.same.all(), both[~both.same].to_string()


def cautioned():
    table = study.read("slow")
    table = table[table.method == slow.QUIET]
    share = table.without_interval / table.data_sets
    return dict(zip(table.setting.map(study.describe), share, strict=True))


def test_slow_swings_are_cautioned_of_where_the_interval_does_not_hold_and_rarely_elsewhere():
    share = cautioned()
    table = study.read("slow")
    given = table[table.method == study.MAIN]
    coverage = dict(zip(given.setting.map(study.describe), given.coverage, strict=True))
    ordinary = [name for name in share if name.startswith(("independent", "AR(1) 0.6", "skewed"))]
    assert len(ordinary) == 4 and max(share[name] for name in ordinary) <= 0.1
    bad = [name for name, each in coverage.items() if each < 0.85]
    assert bad and min(share[name] for name in bad) >= 0.5


def test_tails_cover_but_where_runs_hold_no_burst():
    table = study.read("tails")
    given = table[table.method == study.MAIN].assign(setting=lambda rows: rows.setting.map(study.describe))
    few = given.setting.str.fullmatch("(rare bursts|bursts|slow load regimes), n 6000")
    assert (given.coverage[~few] >= 0.88).all() and (given.coverage[few] < 0.95).any()
    naive = table[table.method == tails.INDEPENDENT]
    assert (naive.coverage[naive.setting.str.contains("bursts|regimes")] < 0.8).all()
