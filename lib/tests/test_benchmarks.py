"""Benchmarks, which no other test runs, name only what the library still has."""

import importlib
import json
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


def test_figures_stand_between_the_markers_with_bound_and_peer(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    measured = importlib.import_module("measured")
    monkeypatch.delitem(sys.modules, "measured")
    monkeypatch.setattr(measured, "RECORDS", tmp_path / "bench.jsonl")
    measured.record("a log", 300.0, "MB/s", bound="at least 350", peer="jc", of_peer=10.0)
    measured.record("a log", 400.0, "MB/s", bound="at least 350", peer="jc", of_peer=10.0)
    measured.record("memory", 275.0, "MB")
    lines = measured.RECORDS.read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[0])["value"] == 300
    earlier = f"{measured.HEAD}| RTT | 2 ms |  |  |  |  |\n| a log | 1 MB/s |  |  |  |  |\n"
    page = measured.written(f"before\n{measured.BEGIN}\n{earlier}{measured.END}\nafter\n", lines)
    rtt, log, memory = page.splitlines()[4:7]
    assert rtt == "| RTT | 2 ms |  |  |  |  |"  # which was not measured again
    assert log.startswith("| a log | 400 MB/s | at least 350 | jc: 10 MB/s | 40 | `.venv/bin/python benchmarks/")
    assert memory.startswith("| memory | 275 MB |  |  |  |")
    assert page.startswith("before\n") and page.endswith(f"{measured.END}\nafter\n") and "1 MB/s" not in page
    assert measured.written(page, lines) == measured.written(page, lines[:1] + lines[1:2]) == page
    assert measured.written(page, lines[:1]) == page.replace("400 MB/s", "300 MB/s").replace("| 40 |", "| 30 |")
