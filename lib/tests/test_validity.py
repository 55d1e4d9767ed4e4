"""The harness on simulations of known coverage, and the committed tables against a run of their first data sets."""

import json
import sys
import types

import numpy as np
import pytest
from simulations import __main__ as command
from simulations import clouds, effects, simulated_surveys, simulation, summaries
from simulations.coverage_figure import coverage as draw_coverage
from simulations.simulation import Outcome

from wanbench.errors import ParameterError, RawDataError
from wanbench.methods.distance import straight_lines
from wanbench.methods.regions import coverage


def normal_mean(seed, n):
    """The mean of n normal numbers with known spread: exact intervals, half as wide ones, and sometimes none."""
    x = np.random.default_rng(seed).normal(3.0, 1.0, n)
    half = 1.959964 / np.sqrt(n)
    none = np.nan if seed % 4 == 0 else 1.0
    return [
        Outcome("mean", "exact", x.mean() - half, x.mean() + half, 3.0),
        Outcome("mean", "half as wide", x.mean() - half / 2, x.mean() + half / 2, 3.0),
        Outcome("mean", "sometimes none", x.mean() - half * none, x.mean() + half * none, 3.0),
        Outcome("mean", "open", x.mean() - half, np.inf, 3.0),
    ]


@pytest.fixture
def toy(monkeypatch):
    module = types.ModuleType("wanbench_toy_simulation")
    module.SETTINGS, module.trial = [{"n": 4}, {"n": 9}], normal_mean
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_counts_are_those_of_a_known_coverage(toy):
    table = simulation.run(toy, datasets=400)
    assert list(table.columns) == simulation.COLUMNS and len(table) == 8
    exact = table[table.method == "exact"]
    assert exact.coverage.between(0.92, 0.98).all()
    assert (exact.coverage_low < 0.95).all() and (exact.coverage_high > 0.95).all()
    assert (table[table.method == "half as wide"].coverage_high < 0.80).all()  # 67.3 % in truth
    sometimes = table[table.method == "sometimes none"]
    assert (sometimes.without_interval == 100).all() and sometimes.coverage.between(0.9, 0.99).all()
    missed = table.data_sets - table.without_interval - table.covered
    assert (table.below + table.above == missed).all()
    assert (table[table.method == "open"].below == 0).all()
    assert exact.median_width.tolist() == pytest.approx([1.959964, 2 * 1.959964 / 3])


def test_neither_the_number_of_processes_nor_of_data_sets_changes_the_first_ones(toy):
    one, two = simulation.run(toy, datasets=45), simulation.run(toy, datasets=45, processes=2)
    assert one.equals(two)
    again = simulation.run(toy, datasets=simulation.FIRST_DATASETS, settings=toy.SETTINGS[1:])
    assert simulation.compare_counts(one, again).same.all()
    one.loc[one.setting == '{"n": 9}', "first_covered"] += 1
    assert not simulation.compare_counts(one, again).same.any()
    with pytest.raises(ParameterError, match="does not count the first 20 data sets of n 9"):
        simulation.compare_counts(one[one.setting == '{"n": 4}'], again)


def test_a_table_is_read_as_it_was_written(toy, tmp_path):
    table = simulation.run(toy, datasets=30, seed=7)
    path = simulation.write(table, "toy", tmp_path)
    assert path.read_text().splitlines()[0] == ("# python -m simulations --only toy --datasets 30 --seed 7")
    back = simulation.read("toy", tmp_path)
    assert back[["setting", "covered", "first_covered"]].equals(table[["setting", "covered", "first_covered"]])
    assert json.loads(back.setting[0]) == {"n": 4}
    path.write_text("a,b\n1,2\n")
    with pytest.raises(RawDataError, match="coverage_low"):
        simulation.read("toy", tmp_path)
    with pytest.raises(RawDataError, match="make validity"):
        simulation.read("nothing", tmp_path)


def test_the_command_writes_what_was_asked_for(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(simulation, "simulations", lambda: {"toy": toy})
    assert command.main(["--only", "toy", "--datasets", "3", "--into", str(tmp_path)]) == 0
    assert (simulation.read("toy", tmp_path).data_sets == 3).all()
    assert "n 9: 3 data sets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["--only", "nothing"])


@pytest.mark.parametrize("wrong", [{"datasets": 0}, {"datasets": 2.5}, {"processes": 0}])
def test_wrong_numbers_are_refused(toy, wrong):
    with pytest.raises(ParameterError, match="allowed: a whole number"):
        simulation.run(toy, **wrong)


# The simulations and their committed tables

BY_REGION = ("rtt", "throughput", "window")


@pytest.mark.parametrize("subject", BY_REGION)
def test_the_committed_table_is_of_the_simulations_settings_and_of_its_number_of_data_sets(subject):
    table, module = simulation.read(subject), simulation.simulations()[subject]
    assert set(table.setting) == {json.dumps(setting) for setting in module.SETTINGS}
    wanted = table.setting.map({json.dumps(setting): module.DATASETS(setting) for setting in module.SETTINGS})
    assert (table.data_sets == wanted).all() and (table.seed == 0).all()
    assert set(wanted) == {effects.FEWER_DATASETS, simulation.DATASETS}
    assert {simulation.MAIN, simulation.NAIVE} <= set(table.method)


@pytest.mark.parametrize("subject", [*BY_REGION, "clouds"])
def test_the_first_data_sets_give_what_the_committed_table_counts(subject):
    module = simulation.simulations()[subject]
    again = simulation.run(module, datasets=simulation.FIRST_DATASETS, settings=[module.SETTINGS[1]])
    both = simulation.compare_counts(simulation.read(subject), again)
    assert both.same.all(), both[~both.same].to_string()


def test_what_crossing_costs_is_covered_and_a_slow_cloud_does_not_widen_it():
    table = simulation.read("clouds")
    crossing = table[(table.quantity == "what crossing costs") & (table.method == simulation.MAIN)]
    assert set(table.setting) == {json.dumps(setting) for setting in simulation.simulations()["clouds"].SETTINGS}
    assert crossing.coverage.between(0.92, 0.99).all() and (crossing.data_sets == effects.FEWER_DATASETS).all()
    width = crossing.set_index("setting").median_width
    for regions in clouds.SIZES:
        alike, slower = (
            width[json.dumps({"regions": regions, "effects": kind})] for kind in ("effects of regions", clouds.SLOWER)
        )
        assert slower == pytest.approx(alike)


@pytest.mark.parametrize("subject", BY_REGION)
def test_intervals_by_place_hold_where_those_by_region_do_not(subject):
    table = simulation.read(subject)
    kinds = table[table.setting.map(lambda text: json.loads(text)["effects"] in effects.BY_CITY)]
    assert (kinds[kinds.method == simulation.MAIN].coverage > 0.93).all()
    if subject == "rtt":
        assert kinds[kinds.method == "regions as units"].coverage.min() < 0.88


@pytest.mark.parametrize("subject", BY_REGION)
def test_taking_pairs_as_independent_fails_where_the_interval_given_does_not(subject):
    table = simulation.read(subject)
    kinds = table[table.setting.map(lambda text: json.loads(text)["effects"]) == "effects of regions"]
    means = kinds.groupby(["quantity", "method"]).coverage.mean().unstack()
    assert (means[simulation.NAIVE] < 0.90).all()
    assert (means[simulation.MAIN].between(0.93, 0.985)).all()


def test_what_results_say_of_their_coverage_is_what_the_tables_say():
    asked, beyond, alike, few = {}, {}, {}, {}
    for subject in BY_REGION:
        table = simulation.read(subject)
        table = table[table.method == simulation.MAIN]
        for row in table.itertuples():
            setting = json.loads(row.setting)
            where = beyond if setting["effects"] in effects.BREAKING_KINDS else asked
            where = alike if setting["effects"] in effects.NEIGHBOURS else where
            where = few if setting["effects"] in effects.FEW_BEYOND_KNEE else where
            key = row.quantity, setting["n_regions"]
            where.setdefault(key, []).append(round(100 * row.coverage, 1))
    for stated, counted in (
        (coverage.COVERAGE, asked),
        (coverage.SKEWED_COVERAGE, beyond),
        (coverage.CORRELATED_COVERAGE, alike),
        (coverage.FEW_BEYOND_COVERAGE, few),
    ):
        flat = {(quantity, n): ends for quantity, sizes in stated.items() for n, ends in sizes.items()}
        assert flat == {key: (min(found), max(found)) for key, found in counted.items()}


def test_few_regions_are_cautioned_of_with_the_figure(monkeypatch):
    measured = {8: (91.0, 96.0), 16: (94.0, 98.0), 46: (92.0, 96.0)}
    monkeypatch.setitem(coverage.COVERAGE, "slope", measured)
    for n, message in ((6, "91.0 to 96.0"), (8, "of 8 regions"), (15, "91.0 to 96.0"), (60, "92.0 to 96.0")):
        assert message in coverage.caution("slope", n)[0]
    assert coverage.caution("slope", 20) == ()
    slope = straight_lines.fit_rtt(simulated_surveys.survey(9, seed=1, region_ms=5), resamples=40).slope
    assert any("contains the true value in 91.0 to 96.0 % of simulated" in warning for warning in slope.warnings)


# What the tables say


def test_tables_to_read(toy):
    table = simulation.run(toy, datasets=200)
    rows = summaries.overview({"toy": table}).set_index("method")
    low, high = map(float, rows.loc["half as wide", "coverage (%)"].split(" to "))
    assert low <= high < 80 and rows.loc["half as wide", "settings within 93 to 97 %"] == "0 of 2"
    assert rows.loc["sometimes none", "without an interval (%), at most"] == 25.0
    out = summaries.outside_band(table, "half as wide")
    shares = out["coverage (%)"].str.partition(" ")[0].astype(float)
    assert list(out.setting) and shares.is_monotonic_increasing and len(out) == 2
    wide = summaries.by_setting(table, "mean")
    assert list(wide.index) == ["n 4", "n 9"]
    assert list(wide.columns) == ["exact", "half as wide", "sometimes none", "open"]
    assert wide["sometimes none"].str.endswith("25 % left out").all()


def test_sentences_say_the_range_and_whether_the_table_came_out_again(toy):
    table = simulation.run(toy, datasets=100)
    found = summaries.finding(table, "mean", "coverage-mean", subject="A toy", method="half as wide")
    low, high = (100 * table[table.method == "half as wide"].coverage).agg(["min", "max"])
    assert f"contains the true value in {low:.1f} to {high:.1f} % of simulated" in found.sentence
    assert "2 kinds of data set, 100 of each; the share is 93 to 97 % for 0 of the kinds" in found.sentence
    with pytest.raises(ParameterError, match="quantity is 'median'; allowed: 'mean'"):
        summaries.finding(table, "median", "x", subject="A toy")
    again = simulation.run(toy, datasets=simulation.FIRST_DATASETS, settings=toy.SETTINGS[:1])
    assert "4 of 4 counts as in the committed table" in summaries.agreement(table, again, "a").sentence
    table.loc[0, "first_covered"] -= 1
    assert "3 of 4 counts as in the committed table, but NOT all" in summaries.agreement(table, again, "a").sentence


def test_the_figure_draws_every_case_over_the_band(toy):
    table = simulation.run(toy, datasets=50)
    drawn = draw_coverage(table, title="A mean", methods=["exact", "half as wide"])
    assert [trace.name for trace in drawn.data] == ["exact", "half as wide"]
    assert all(len(trace.x) == 2 for trace in drawn.data)
    assert "half as wide: " in drawn.layout.meta["caption"]
    band = drawn.layout.shapes[0]
    assert (band.x0, band.x1) == (0.93, 0.97)
    with pytest.raises(ParameterError, match="allowed: at most 4 of exact"):
        draw_coverage(table, title="A mean", methods=["none such"])
    assert len(draw_coverage(table, title="A mean").data) == 4
