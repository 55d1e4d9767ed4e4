"""The harness on a study whose coverage is known, and the committed tables against a run of their first data sets."""

import json
import sys
import types

import numpy as np
import pytest

from wanbench.errors import ParameterError, RawDataError
from wanbench.validity import __main__ as command
from wanbench.validity import study
from wanbench.validity.study import Outcome


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
    module = types.ModuleType("wanbench_toy_study")
    module.TITLE, module.SETTINGS, module.trial = "A mean", [{"n": 4}, {"n": 9}], normal_mean
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_counts_are_those_of_a_known_coverage(toy):
    table = study.run(toy, datasets=400)
    assert list(table.columns) == study.COLUMNS and len(table) == 8
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
    one, two = study.run(toy, datasets=45), study.run(toy, datasets=45, processes=2)
    assert one.equals(two)
    again = study.run(toy, datasets=study.FIRST, settings=toy.SETTINGS[1:])
    assert study.agrees(one, again).same.all()
    one.loc[one.setting == '{"n": 9}', "first_covered"] += 1
    assert not study.agrees(one, again).same.any()
    with pytest.raises(ParameterError, match="does not count the first 20 data sets of n 9"):
        study.agrees(one[one.setting == '{"n": 4}'], again)


def test_a_table_is_read_as_it_was_written(toy, tmp_path):
    table = study.run(toy, datasets=30, seed=7)
    path = study.write(table, "toy", tmp_path)
    assert path.read_text().splitlines()[0] == (
        "# python -m wanbench.validity --only toy --datasets 30 --seed 7"
    )
    back = study.read("toy", tmp_path)
    assert back[["setting", "covered", "first_covered"]].equals(
        table[["setting", "covered", "first_covered"]]
    )
    assert json.loads(back.setting[0]) == {"n": 4}
    path.write_text("a,b\n1,2\n")
    with pytest.raises(RawDataError, match="coverage_low"):
        study.read("toy", tmp_path)
    with pytest.raises(RawDataError, match="make validity"):
        study.read("nothing", tmp_path)


def test_the_command_writes_what_was_asked_for(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "studies", lambda: {"toy": toy})
    assert command.main(["--only", "toy", "--datasets", "3", "--into", str(tmp_path)]) == 0
    assert (study.read("toy", tmp_path).data_sets == 3).all()
    assert "n 9: 3 data sets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["--only", "nothing"])


@pytest.mark.parametrize("wrong", [{"datasets": 0}, {"datasets": 2.5}, {"processes": 0}])
def test_numbers_that_are_none_fail(toy, wrong):
    with pytest.raises(ParameterError, match="whole number from 1"):
        study.run(toy, **wrong)
