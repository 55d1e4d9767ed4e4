"""The torturer sees what it looks for: changed files, what is left, tracebacks, and words that say nothing."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
import torture.watched as watched
from torture import table
from torture.__main__ import Torturer, _changed, _check_words
from torture.faults import FAULTS

from wanbench.errors import MissingDataError, RawDataError


@pytest.fixture
def study(tmp_path):
    return watched.Study(tmp_path)


def test_a_file_that_a_finished_test_measured_must_not_change(study):
    folder = study.data / "raw" / "torture" / "run"
    folder.mkdir(parents=True)
    (folder / "ping.txt").write_bytes(b"64 bytes")
    event = {
        "event": "test-finished",
        "files": [{"path": "ping.txt", "sha256": hashlib.sha256(b"64 bytes").hexdigest()}],
    }
    journal = folder / "journal.jsonl"
    journal.write_text(json.dumps(event) + '\n{"event": "torn')
    before = study.kept()
    assert len(before) == 2 and not _changed(study, before, study.kept())
    (folder / "ping.txt").write_bytes(b"65 bytes")
    assert _changed(study, before, study.kept()) == ["raw/torture/run/ping.txt"]
    (folder / "ping.txt").unlink()
    assert study.kept()["raw/torture/run/ping.txt"] == "damaged"
    journal.write_text("")
    assert len(_changed(study, before, study.kept())) == 2


def test_processes_and_files_that_are_left_are_named(study, monkeypatch):
    monkeypatch.setattr(watched, "GONE_S", 0)
    assert not study.left() and not study.files_left()
    study.start(["sleep", "60"])
    while not study.processes(watched.is_any):
        time.sleep(0.01)
    assert ["sleep 60" in line for line in study.left()] == [True]
    assert study.driver.wait(10) == -9
    (study.temporary / "wanbench-local-1").mkdir()
    (study.data / ".ping.txt.unfinished").touch()
    assert len(study.files_left()) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_study_hears_signals_that_the_torturer_ignores(study, number):
    earlier = signal.signal(number, signal.SIG_IGN)
    try:
        watched.let_hear()
        os.kill(os.getpid(), number)
        study.start(["sleep", "60"])
        study.driver.send_signal(number)
        assert study.driver.wait(50) == -number
    finally:
        signal.signal(number, earlier)


@pytest.mark.parametrize(
    ("program", "harm"),
    [
        ("print('2 of 2 tests are done.')", None),
        ("print('Traceback (most recent call last):')\nprint('2 of 2 tests are done.')", "tracebacks"),
        ("print('Good bye.')", "silent"),
        ("print('2 of 2 tests are done.')\nraise SystemExit(7)", "silent"),
    ],
)
def test_status_and_last_words_must_be_those_of_the_fault(tmp_path, program, harm):
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-S", "-c", program], stdout=output, stderr=output)
    process.wait(60)
    found = {name: [] for name in table.HARMS}
    _check_words(watched.Started(process, log), {0: "2 of 2 tests are done"}, found)
    assert [name for name, cases in found.items() if cases] == ([harm] if harm else [])


def test_faults_on_heavier_studies_are_drawn_less_often_but_each_is():
    torturer = Torturer(list(FAULTS), 1, time.monotonic() + 600)
    times = {name: 6 // watched.KINDS[fault.study].every for name, fault in FAULTS.items()}
    assert Counter(torturer._draw()[1] for _ in range(sum(times.values()))) == times


def test_the_table_says_how_many_faults_did_harm(tmp_path):
    path = tmp_path / "torture.json"
    kinds = {"SIGKILL to the driver": {"n": 200, "lost": 0, "left": 1}, "disk full": {"n": 99}}
    about = {"seed": 1, "jobs": 3, "seconds": 9, "total": {}, "not_possible": {}, "harm": []}
    path.write_text(json.dumps(about | {"kinds": kinds}))
    shown = table.read(path)
    assert shown.sentence.startswith("299 faults of 2 kinds") and "after 1 something was left" in shown.sentence
    assert shown.estimates[0].high == pytest.approx(0.01, rel=0.01) and shown.estimates[1].estimate == 1 / 299
    assert "harm after 1 of them" in shown.figure().layout.title.text
    path.write_text("[]")
    with pytest.raises(RawDataError, match="kinds"):
        table.read(path)
    with pytest.raises(MissingDataError, match="make torture"):
        table.read(tmp_path / "none.json")


def test_a_table_of_damaged_files_and_one_of_growth_are_read(tmp_path):
    with pytest.raises(MissingDataError, match="make fuzz"):
        table.recorded(table.Fuzzing, tmp_path / "fuzz.csv")
    (tmp_path / "fuzz.csv").write_text(",".join(table.FUZZ) + "\nmtr,,1,10,500,0\nmtr,,2,20,700,1\n")
    assert table.recorded(table.Fuzzing, tmp_path / "fuzz.csv").sentence.startswith(
        "1 of 27 readers read 1,200 damaged files in 30 minutes of processor time, at least 30 each. 1 of the files"
    )
    rows = "memory,KiB,2,1,3,90\nopen files,,0,-1,1,90\n"
    (tmp_path / "soak.csv").write_text(",".join(table.SOAK) + "\n" + rows)
    grown = table.recorded(table.Soak, tmp_path / "soak.csv").sentence
    assert "growth per survey: memory by 2 KiB (95 % interval 1 to 3); not shown to grow: open files." in grown
    (tmp_path / "soak.csv").write_text("what\nmemory\n")
    with pytest.raises(RawDataError, match="the columns what, unit"):
        table.recorded(table.Soak, tmp_path / "soak.csv")
