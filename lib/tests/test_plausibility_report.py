"""The report of flags, the flagged rows, and what changes without them."""

import numpy as np
import pandas as pd
import pytest
from simulations import faults as validity_faults
from simulations import planted_faults, simulated_surveys, simulation
from simulations import plausibility as validity_plausibility
from simulations.clean_tables import FORMS

from wanbench import methods, tables
from wanbench.errors import ParameterError
from wanbench.folders import samples_folder
from wanbench.methods.regions.sensitivity import with_and_without
from wanbench.read import ingest, plausibility


def flag(**columns):
    row = {"table": "pings", "scope": "row", "verdict": "impossible", "rule": "light", "found": "f", "cause": "c"}
    return row | columns


def flags(*rows):
    return tables.from_rows("flags", rows)


@pytest.fixture(scope="module")
def pairs():
    return simulated_surveys.survey(12, seed=4)


def test_nothing_flagged_is_a_sentence():
    report = plausibility.report(flags())
    assert str(report) == "The plausibility rules raise no flag."


def test_a_cause_is_told_once_and_escaped():
    planted = planted_faults.plant("coordinates exchanged", 1, n_regions=12)
    report = plausibility.report(plausibility.check(planted.tables))
    assert str(report).count("are exchanged") == 1
    assert planted.region in report.sentences[1]
    hostile = plausibility.report(flags(flag(found="<script>", cause="<b>")))
    assert "<script>" not in hostile._repr_html_() and "&lt;script&gt;" in hostile._repr_html_()


def test_rows_regions_and_directions_that_are_flagged(pairs):
    a, b, c = sorted(set(pairs.from_region))[:3]
    one = plausibility.suspects(pairs, flags(flag(from_region=a, to_region=b)))
    assert list(map(tuple, pairs[one][["from_region", "to_region"]].to_numpy())) == [(a, b)]
    placed = plausibility.suspects(pairs, flags(flag(scope="region", rule="coordinates", region=c)))
    assert placed.sum() == 22
    measured = plausibility.suspects(pairs, flags(flag(scope="region", region=c)))
    assert measured.sum() == 11 and set(pairs[measured].from_region) == {c}
    column = plausibility.suspects(pairs, flags(flag(scope="column", column_name="rtt_ms")))
    assert not column.any()


def test_only_what_concerns_the_analysis_is_left_out(pairs):
    a, b = sorted(set(pairs.from_region))[:2]
    rate = flags(flag(from_region=a, to_region=b, column_name="throughput_bps"))
    assert plausibility.suspects(pairs, rate, about="throughput").sum() == 1
    assert plausibility.suspects(pairs, rate, about="rtt").sum() == 0
    with pytest.raises(ParameterError, match="about"):
        plausibility.suspects(pairs, rate, about="loss")


def test_sensitivity_undoes_a_planted_fault(pairs):
    region = sorted(set(pairs.from_region))[0]
    mine = (pairs.from_region == region) | (pairs.to_region == region)
    wrong = pairs.assign(distance_km=pairs.distance_km.where(~mine, 20_000 - pairs.distance_km))
    found = flags(flag(scope="region", rule="coordinates", region=region))
    both = with_and_without(methods.fit_rtt, wrong, found)
    table = both.table().set_index("quantity")
    clean = methods.fit_rtt(pairs[~mine].reset_index(drop=True))
    assert table.without_estimate.iloc[0] == pytest.approx(clean.estimates[0].estimate)
    assert table.estimate.iloc[0] == pytest.approx(methods.fit_rtt(wrong).estimates[0].estimate)
    assert len(both.left_out) == 22 and both.n_pairs == 132
    assert f"22 of 132 ordered pairs are flagged and left out (22 by the rule “coordinates” for {region})" in str(both)
    assert "instead of" in str(both) and "<table" in both._repr_html_()
    assert both.estimates[0].n_regions == 11


def test_without_flags_both_are_one(pairs):
    both = with_and_without(methods.fit_rtt, pairs, flags())
    assert both.sentence == "The plausibility rules flag none of 132 ordered pairs."
    assert (both.table().change == 0).all() and not both.table().outside.any()


def test_where_nothing_is_left_it_says_so(pairs):
    every = flags(*[flag(scope="region", rule="coordinates", region=name) for name in set(pairs.from_region)])
    both = with_and_without(methods.fit_rtt, pairs, every)
    assert both.without is None and "impossible without them" in str(both)
    assert both.table().without_estimate.isna().all()
    column = flags(flag(scope="column", column_name="rtt_ms", found="all in seconds", cause="a factor"))
    assert "all in seconds (a factor)" in str(with_and_without(methods.fit_rtt, pairs, column))


def test_a_runs_tables_have_flags_and_the_account_counts_them(tmp_path):
    run = next(iter(sorted(samples_folder().glob("raw/survey-quick/*/"))))
    found = ingest.tabulate(run, tmp_path)
    assert tables.read("flags", tmp_path).empty
    counts = ingest.account(found | {"flags": flags(flag(), flag(verdict="suspect"), flag())}).set_index("what").n
    assert counts["flags of the plausibility rules, impossible"] == 2
    assert counts["flags of the plausibility rules, suspect"] == 1
    assert not any("rules" in what for what in ingest.account(ingest.read_run(run)).what)


def test_an_analysis_must_give_estimates(pairs):
    with pytest.raises(ParameterError, match="result of the analysis is 132"):
        with_and_without(len, pairs, flags())
    one = with_and_without(lambda rows: methods.fit_rtt(rows).estimates[0], pairs, flags())
    assert len(one.table()) == 1
    assert isinstance(one.table(), pd.DataFrame) and np.isfinite(one.table().estimate[0])


def test_the_simulations_of_the_rules_count_silence_and_names():
    silent = simulation.run(validity_plausibility, datasets=1, settings=validity_plausibility.SETTINGS[1:2])
    named = simulation.run(validity_faults, datasets=1, settings=[{"fault": "MiB for MB"}])
    for counted in (silent, named):
        assert list(counted.covered) == [1] and list(counted.data_sets) == [1]
    one = validity_plausibility.trial(0, form="grid")[0]
    assert (one.low, one.high, one.truth) == (0, 0, 0)
    assert len(validity_plausibility.SETTINGS) == len(FORMS) and len(validity_faults.SETTINGS) == len(
        planted_faults.FAULTS
    )
