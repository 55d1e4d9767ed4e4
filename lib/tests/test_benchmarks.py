"""Benchmarks, which no other test runs, name only what the library still has."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_a_benchmark_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert Path(importlib.import_module(name).__file__).parent == BENCHMARKS
    monkeypatch.delitem(sys.modules, name)
