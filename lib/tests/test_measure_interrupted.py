"""Measuring that is stopped or called again: what is done is kept, resumed and not repeated."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest
from measuring import REGIONS, failing, go, newest, outcomes, plan_of, stopping_after, threads_of_tests
from scripted_lab import ScriptedLab, well

from wanbench.errors import LabError, RawDataError
from wanbench.measure.experiments import Ping
from wanbench.runs import RunHeldError, overlaps


def test_a_finished_run_is_returned_without_opening_the_lab(tmp_path):
    first = go(tmp_path, ScriptedLab(REGIONS))
    lab = ScriptedLab(REGIONS)
    again = go(tmp_path, lab)
    assert again.folder == first.folder and lab.opened == 0
    fresh = go(tmp_path, lab, fresh=True)
    assert fresh.folder != first.folder and lab.opened == 1


def test_other_parameters_and_other_labs_are_other_runs(tmp_path):
    folders = {
        go(tmp_path, ScriptedLab(REGIONS)).folder,
        go(tmp_path, ScriptedLab(REGIONS), parameters={"a": 1}).folder,
        go(tmp_path, ScriptedLab(REGIONS, sysctls={"net.ipv4.tcp_rmem": "4096 8192 16384"})).folder,
        go(tmp_path, ScriptedLab(REGIONS), plan_of(seed=1)).folder,
        go(tmp_path, ScriptedLab(REGIONS), plan_of(experiments=[Ping(count=2)])).folder,
    }
    assert len(folders) == 5


@pytest.mark.parametrize("number, exception", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGHUP, SystemExit)])
def test_a_signal_stops_keeps_and_resumes(tmp_path, number, exception):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    lab = ScriptedLab(REGIONS, stopping_after(7, lambda: os.kill(os.getpid(), number)))
    with pytest.raises(exception) as raised:
        go(tmp_path, lab, retries=0)
    if exception is KeyboardInterrupt:
        shown = "".join(traceback.format_exception(raised.value))
        assert raised.traceback[-1].name == "measure" and shown.count("Traceback") == 1, "no insides of ours"
        assert "The measurements are kept" in shown
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert lab.closed == 1 and not threads_of_tests()
    run = newest(tmp_path)
    assert run.events()[-1]["event"] == "interrupted" and run.events()[-1]["reason"] == number.name
    before = run.tests()
    done = before.loc[before["outcome"] == "done", "test_id"]
    assert 6 <= len(done) <= 7 and set(before["outcome"]) == {"done", "interrupted"}
    second, agreed = ScriptedLab(REGIONS), []
    second.agree_to = lambda plan, *_: agreed.extend(test.id for test in plan.tests)
    run = go(tmp_path, second, retries=0)  # an interruption is no failure
    assert sorted([*agreed, *done]) == sorted(outcomes(run)), "what is done is not paid for again"
    assert run.finished and run.folder == newest(tmp_path).folder
    found = outcomes(run)
    assert len(found) == 12 and all(o.count("done") == 1 for o in found.values())
    again = run.tests().loc[run.tests()["outcome"] == "done"].set_index("test_id")["attempt"]
    assert set(again[list(done)]) == {1} and (again == 2).sum() == (before["outcome"] == "interrupted").sum()
    pings = sum(process.command[0] == "ping" for process in second.processes)
    assert pings == 12 - len(done), "what was done is not measured again"
    assert len(overlaps(run)) == 0
    run.verify()


def test_failures_are_counted_on_after_an_interruption(tmp_path):
    def stop():
        os.kill(os.getpid(), signal.SIGINT)

    # the first of three extra rounds is done when the second is stopped
    bad, good = failing("aws:r-1", "iperf3", 10**9), stopping_after(14, stop)

    def script(host, command):
        reply = good(host, command)
        return reply if reply.lasts_s is None else bad(host, command)

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, ScriptedLab(REGIONS, script), retries=1)
    assert newest(tmp_path).tests().attempt.value_counts().to_dict() == {1: 12, 2: 2}
    run = go(tmp_path, ScriptedLab(REGIONS, bad), retries=1)
    again = run.tests().query("attempt > 1")
    assert len(again) == 4 and again["round"].tolist() == list(range(7, 11)), "each in an extra round of its own"
    for test_id, tests in run.tests().groupby("test_id"):
        kinds = list(tests["outcome"])
        expected = 2 if tests["from_region"].iloc[0] == "aws:r-1" else 0
        assert kinds.count("failed") == expected, test_id
        assert list(tests["attempt"]) == list(range(1, len(kinds) + 1))


def test_an_exception_while_the_lab_opens_leaves_nothing(tmp_path):
    class Broken(ScriptedLab):
        def __enter__(self):
            raise LabError("no namespaces here")

    with pytest.raises(LabError, match="no namespaces here"):
        go(tmp_path, Broken(REGIONS))
    assert list((tmp_path / "raw/test").iterdir()) == []


def test_a_signal_while_the_lab_opens_is_heard_at_once(tmp_path):
    class Slow(ScriptedLab):
        def __enter__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
            raise AssertionError("not interrupted")

    with pytest.raises(SystemExit):
        go(tmp_path, Slow(REGIONS))
    assert list((tmp_path / "raw/test").iterdir()) == []


def test_a_second_signal_does_not_break_the_closing_of_the_lab(tmp_path):
    class Closing(ScriptedLab):
        def __exit__(self, *exception):
            os.kill(os.getpid(), signal.SIGINT)
            super().__exit__(*exception)

    lab = Closing(REGIONS, stopping_after(3, lambda: os.kill(os.getpid(), signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, lab)
    assert lab.closed == 1 and newest(tmp_path).events()[-1]["event"] == "interrupted"


def test_two_do_not_measure_into_one_run(tmp_path):
    tried = []

    def script(host, command):
        if not tried:
            tried.append(1)
            with pytest.raises(RunHeldError):
                go(tmp_path, ScriptedLab(REGIONS))
            tried.append(2)
        return well(host, command)

    assert go(tmp_path, ScriptedLab(REGIONS, script)).finished and tried == [1, 2]


def at_ping(n, do):
    """Everything works; `do` is called before the nth ping."""
    numbers, lock = itertools.count(1), threading.Lock()

    def script(host, command):
        with lock:
            if command[0] == "ping" and next(numbers) == n:
                do()
        return well(host, command)

    return script


class Counting(ScriptedLab):
    """Its counters are raw files of each session."""

    def counters(self):
        return []


@pytest.mark.parametrize("moved", [False, True])
def test_a_data_folder_that_is_removed_ends_the_session_and_the_next_start_measures(tmp_path, moved):
    def remove():
        shutil.move(tmp_path / "data", tmp_path / "elsewhere")
        if not moved:
            shutil.rmtree(tmp_path / "elsewhere")

    lab = Counting(REGIONS, at_ping(5, remove))
    with pytest.raises(RawDataError, match=r"expected the journal, which was removed while it was in use"):
        go(tmp_path / "data", lab)
    assert lab.closed == 1 and len(lab.processes) < 36, "no further round is measured"
    run = go(tmp_path / "data", Counting(REGIONS))
    assert run.finished and "12 of 12 done, 0 failed" in str(run)
    run.verify()


@pytest.mark.parametrize("kept", [None, 0, 0.5])
def test_a_journal_that_is_lost_emptied_or_cut_heals_at_the_next_start(tmp_path, kept):
    for n in (4, 9):
        stop = stopping_after(n, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            go(tmp_path, Counting(REGIONS, stop), retries=0)
    path = newest(tmp_path).folder / "journal.jsonl"
    whole = path.read_bytes()
    if kept is None:
        path.unlink()
    else:
        path.write_bytes(whole[: int(len(whole) * kept)])
    run = go(tmp_path, Counting(REGIONS), retries=0)
    assert run.folder == path.parent and run.finished and "12 of 12 done, 0 failed" in str(run)
    run.verify()


@pytest.mark.parametrize("kept", [None, 0, 0.5])
def test_a_finished_run_whose_journal_is_lost_emptied_or_cut_names_the_remedy(tmp_path, kept):
    path = go(tmp_path, ScriptedLab(REGIONS)).folder / "journal.jsonl"
    whole = path.read_bytes()
    if kept is None:
        path.unlink()
    else:
        path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(RawDataError, match="Restore the run from a copy, or start a new run with --fresh"):
        go(tmp_path, ScriptedLab(REGIONS))
    assert go(tmp_path, ScriptedLab(REGIONS), fresh=True).finished


def test_measuring_outside_the_main_thread(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.append(go(tmp_path, ScriptedLab(REGIONS))))
    thread.start()
    thread.join(60)
    assert found[0].finished


CHILD = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from scripted_lab import PING_TEXT, Reply, ScriptedLab, well
from measuring import REGIONS, go
pings, lock = [], threading.Lock()
def script(host, command):
    with lock:
        pings.extend([host] * (command[0] == "ping"))
        if len(pings) < 8:
            return well(host, command)
        print("now", flush=True)
        return Reply(PING_TEXT, lasts_s=None)
go({folder!r}, ScriptedLab(REGIONS, script))
"""


def test_a_child_that_is_killed_loses_nothing(tmp_path):
    numbers = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
    children = {}
    try:
        for number in numbers:
            code = CHILD.format(tests=str(Path(__file__).parent), folder=str(tmp_path / number.name))
            children[number] = subprocess.Popen(
                [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        for number, child in children.items():
            assert child.stdout.readline() == b"now\n"
            child.send_signal(number)
        ends = {number: child.wait(60) for number, child in children.items()}
    finally:
        for child in children.values():
            child.kill()
            child.stdout.close()
    assert ends == {signal.SIGKILL: -9, signal.SIGINT: -2, signal.SIGTERM: 143}
    for number in numbers:
        folder = tmp_path / number.name
        before = newest(folder)
        done = {a.test_id for a in before.attempts() if a.outcome == "done"}
        assert not before.finished and 6 <= len(done) <= 7
        lab = ScriptedLab(REGIONS)
        run = go(folder, lab)
        assert run.finished and run.folder == before.folder
        assert all(o.count("done") == 1 for o in outcomes(run).values()) and len(outcomes(run)) == 12
        assert sum(process.command[0] == "ping" for process in lab.processes) == 12 - len(done)
        run.verify()
