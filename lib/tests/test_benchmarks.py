"""Benchmarks, which no other test runs, name only what the library still has."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_a_benchmark_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    try:
        assert callable(importlib.import_module(name).main)
    finally:
        for added in set(sys.modules) - before:
            if (
                getattr(sys.modules[added], "__file__", None)
                and BENCHMARKS in Path(sys.modules[added].__file__).parents
            ):
                del sys.modules[added]
