"""
Measuring on a scripted lab: order, failures, retries, interruption, resumption.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from scripted_lab import PING_TEXT, Reply, ScriptedLab, well

from wanbench.errors import LabError, ParameterError, RawDataError
from wanbench.experiments import Iperf3, Ping
from wanbench.measure import measure
from wanbench.plan import make_plan
from wanbench.runs import Run, RunHeldError, overlaps

REGIONS = ["aws:r-1", "aws:r-2", "gcp:r-3", "gcp:r-4"]
EXPERIMENTS = (Ping(count=1), Iperf3(duration_s=1))
RTTS = {(a, b): 10.0 for a in REGIONS for b in REGIONS}


def plan_of(experiments=EXPERIMENTS, **arguments):
    return make_plan(regions=REGIONS, experiments=experiments, rtt_ms=RTTS, **arguments)


def go(folder, lab, plan=None, **arguments) -> Run:
    return measure(
        plan or plan_of(), lab, data_folder=folder, campaign="test", **{"progress": False, **arguments}
    )


def outcomes(run: Run) -> dict[str, list[str]]:
    table = run.tests()
    return {test_id: list(group["outcome"]) for test_id, group in table.groupby("test_id")}


def newest(folder) -> Run:
    (path,) = (Path(folder) / "raw/test").glob("*/journal.jsonl")
    return Run.open(path.parent)


def threads_of_tests():
    return [thread for thread in threading.enumerate() if thread.name[:4].isdigit()]


def test_all_pairs_are_measured_in_rounds(tmp_path):
    lab, plan = ScriptedLab(REGIONS), plan_of()
    run = go(tmp_path, lab, plan, parameters={"preset": "quick"})
    assert run.finished and (lab.opened, lab.closed) == (1, 1)
    table = run.tests()
    assert list(table["outcome"]) == ["done"] * 12 and list(table["attempt"]) == [1] * 12
    assert set(table["test_id"]) == {test.id for test in plan.tests}
    assert len(overlaps(run)) == 0
    files = run.raw_files()
    assert len(files) == 36 and {file["experiment"] for file in files} == {"ping", "iperf3"}
    assert all(len(list((run.folder / name).iterdir())) == n for name, n in (("ping", 12), ("iperf3", 24)))
    run.verify()
    assert run.lab["kind"] == "scripted" and run.parameters == {"preset": "quick"}
    kinds = [event["event"] for event in run.events()]
    assert kinds[0] == "run-started" and kinds[-1] == "run-finished" and kinds.count("round-started") == 6


def test_tests_of_a_round_run_at_the_same_time_and_experiments_in_order(tmp_path):
    meeting = threading.Barrier(2, timeout=20)

    def script(host, command):
        if command[0] == "ping":
            meeting.wait()
        return well(host, command)

    run = go(tmp_path, ScriptedLab(REGIONS, script))
    assert set(run.tests()["outcome"]) == {"done"}
    ends = {}
    for file in run.raw_files():
        ends.setdefault(file["test_id"], []).append((file["experiment"], file["started_at_utc"]))
    for files in ends.values():
        assert [name for name, _ in files] == ["ping", "iperf3", "iperf3"]
        assert files[0][1] < min(files[1][1], files[2][1])


def test_batch_1_is_one_after_another(tmp_path):
    running, most = [], []

    def script(host, command):
        if command[0] == "ping":
            running.append(1)
            most.append(len(running))
            time.sleep(0.002)
            running.pop()
        return well(host, command)

    run = go(tmp_path, ScriptedLab(REGIONS, script), plan_of(batch=1))
    assert max(most) == 1 and run.tests()["round"].max() == 12


def failing(region, tool, times):
    """The tool fails on the region's host so many times."""
    left = [times]
    lock = threading.Lock()

    def script(host, command):
        with lock:
            if host.region == region and command[0] == tool and left[0] > 0 and "-s" not in command[:2]:
                left[0] -= 1
                if tool == "ping":
                    return Reply(b"", b"ping: Network is unreachable\n", 2)
                return Reply(json.dumps({"error": "unable to connect"}).encode(), returncode=1)
        return well(host, command)

    return script


def test_failures_are_journalled_and_tried_again_in_extra_rounds(tmp_path):
    plan = plan_of()
    run = go(tmp_path, ScriptedLab(REGIONS, failing("gcp:r-3", "iperf3", 3)), plan)
    table = run.tests()
    failed = table[table["outcome"] == "failed"]
    assert len(failed) == 3 and set(failed["from_region"]) == {"gcp:r-3"}
    assert set(failed["failed_experiment"]) == {"iperf3"}
    assert all(reason.endswith("unable to connect") for reason in failed["reason"])
    again = table[table["attempt"] == 2]
    assert list(again["outcome"]) == ["done"] * 3 and again["round"].min() == len(plan.rounds) + 1
    assert again["round"].nunique() == 3, "a region takes part in one test at a time, also when tried again"
    assert len(overlaps(run)) == 0
    kept = [file for file in run.raw_files() if file["outcome"] == "failed"]
    assert {Path(file["path"]).parts[0] for file in kept} == {"ping", "iperf3"} and len(kept) == 9
    run.verify()


@pytest.mark.parametrize("retries, attempts", [(0, 1), (1, 2), (2, 3)])
def test_tests_are_given_up_after_the_retries(tmp_path, retries, attempts):
    run = go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=retries)
    found = outcomes(run)
    assert sorted(found.values()) == [["done"]] * 9 + [["failed"] * attempts] * 3
    assert run.finished and "9 of 12 done, 3 failed" in str(run)
    assert not any("iperf3" in file["path"] for file in run.raw_files() if file["outcome"] == "failed")


def test_a_lab_error_on_a_host_is_a_failed_test(tmp_path):
    def script(host, command):
        if host.region == "gcp:r-4":
            raise LabError("host does not answer")
        return well(host, command)

    run = go(tmp_path, ScriptedLab(REGIONS, script), retries=0)
    assert sum(o == ["failed"] for o in outcomes(run).values()) == 6
    assert run.tests()["reason"].dropna().str.contains("host does not answer").all()


def test_a_lab_that_died_is_not_taken_for_tests_that_fail(tmp_path):
    class Dying(ScriptedLab):
        asked = 0

        def describe(self):
            self.asked += 1
            if self.asked > 1:
                raise LabError("the keeper is gone")
            return super().describe()

    def script(host, command):
        raise LabError("cannot start")

    with pytest.raises(LabError, match="the keeper is gone"):
        go(tmp_path, Dying(REGIONS, script))
    run = newest(tmp_path)
    assert not run.finished and len(run.tests()) == 2
    assert go(tmp_path, ScriptedLab(REGIONS)).finished


def test_a_bug_is_not_taken_for_a_failed_test(tmp_path):
    def script(host, command):
        if host.region == "gcp:r-4":
            raise ZeroDivisionError("bug")
        return well(host, command)

    lab = ScriptedLab(REGIONS, script)
    with pytest.raises(ZeroDivisionError, match="bug"):
        go(tmp_path, lab)
    assert lab.closed == 1
    run = newest(tmp_path)
    assert not run.finished and "failed" not in set(run.tests()["outcome"])
    assert (
        run.events()[-1]["event"] == "interrupted" and "ZeroDivisionError: bug" in run.events()[-1]["reason"]
    )
    assert go(tmp_path, ScriptedLab(REGIONS)).finished


def test_a_finished_run_is_returned_without_opening_the_lab(tmp_path):
    first = go(tmp_path, ScriptedLab(REGIONS))
    lab = ScriptedLab(REGIONS)
    again = go(tmp_path, lab)
    assert again.folder == first.folder and lab.opened == 0
    fresh = go(tmp_path, lab, fresh=True)
    assert fresh.folder != first.folder and lab.opened == 1


def test_other_parameters_and_other_labs_are_other_runs(tmp_path):
    chosen = ScriptedLab(REGIONS)
    chosen.emulator = "relay"
    folders = {
        go(tmp_path, chosen).folder,
        go(tmp_path, ScriptedLab(REGIONS)).folder,
        go(tmp_path, ScriptedLab(REGIONS), parameters={"a": 1}).folder,
        go(tmp_path, ScriptedLab(REGIONS, sysctls={"net.ipv4.tcp_rmem": "4096 8192 16384"})).folder,
        go(tmp_path, ScriptedLab(REGIONS), plan_of(seed=1)).folder,
        go(tmp_path, ScriptedLab(REGIONS), plan_of(experiments=[Ping(count=2)])).folder,
    }
    assert len(folders) == 6


def stopping_after(n, stop):
    """Everything works until the nth ping, where `stop` is called."""
    count, lock = [0], threading.Lock()

    def script(host, command):
        with lock:
            if command[0] == "ping":
                count[0] += 1
            if count[0] == n:
                count[0] += 1
                stop()
                return Reply(PING_TEXT, lasts_s=None)
        return well(host, command)

    return script


@pytest.mark.parametrize(
    "number, exception", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_stops_keeps_and_resumes(tmp_path, number, exception):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    lab = ScriptedLab(REGIONS, stopping_after(7, lambda: os.kill(os.getpid(), number)))
    with pytest.raises(exception):
        go(tmp_path, lab)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert lab.closed == 1 and not threads_of_tests()
    run = newest(tmp_path)
    assert run.events()[-1]["event"] == "interrupted" and run.events()[-1]["reason"] == number.name
    before = run.tests()
    done = before.loc[before["outcome"] == "done", "test_id"]
    assert 6 <= len(done) <= 7 and set(before["outcome"]) == {"done", "interrupted"}
    second = ScriptedLab(REGIONS)
    run = go(tmp_path, second)
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

    bad, good = failing("aws:r-1", "iperf3", 10**9), stopping_after(12, stop)

    def script(host, command):
        reply = good(host, command)
        return reply if reply.lasts_s is None else bad(host, command)

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, ScriptedLab(REGIONS, script), retries=1)
    run = go(tmp_path, ScriptedLab(REGIONS, bad), retries=1)
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


def test_a_region_that_the_lab_lacks_is_said_before_anything_is_measured(tmp_path):
    lab = ScriptedLab(REGIONS[:3])
    with pytest.raises(ParameterError, match="no host in gcp:r-4; it has aws:r-1, aws:r-2, gcp:r-3"):
        go(tmp_path, lab)
    assert lab.closed == 1 and lab.processes == [] and list((tmp_path / "raw/test").iterdir()) == []


@pytest.mark.parametrize("retries", [-1, 1.5, None, True])
def test_retries_are_checked(tmp_path, retries):
    with pytest.raises(ParameterError, match="retries"):
        go(tmp_path, ScriptedLab(REGIONS), retries=retries)


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


def test_an_empty_plan_is_a_finished_run(tmp_path):
    done = go(tmp_path, ScriptedLab(REGIONS)).tests()
    lab = ScriptedLab(REGIONS)
    run = go(tmp_path, lab, plan_of(tests_done_before=done, skip_done=True))
    assert run.finished and len(run.tests()) == 0 and lab.opened == 0


def test_link_counters_are_kept_raw_and_hashed(tmp_path):
    class Counting(ScriptedLab):
        def counters(self):
            return [{"from_region": "aws:r-1", "to_region": "gcp:r-3", "packets_sent": 7}]

    run = go(tmp_path, Counting(REGIONS))
    (file,) = [file for file in run.raw_files() if file["experiment"] == "links"]
    assert file["path"] == "links/counters.json" and file["test_id"] is None
    assert json.loads((run.folder / file["path"]).read_bytes())[0]["packets_sent"] == 7
    assert file["sha256"] == run.manifest["files"]["links/counters.json"]


def test_counters_of_each_sitting_have_their_own_file(tmp_path):
    class Counting(ScriptedLab):
        def counters(self):
            return []

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Counting(REGIONS, stopping_after(5, lambda: os.kill(os.getpid(), signal.SIGINT))))
    run = go(tmp_path, Counting(REGIONS))
    kept = [f["path"] for f in run.raw_files() if f["experiment"] == "links"]
    assert kept == ["links/counters.json", "links/counters.2.json"]


def test_a_lost_raw_file_stops_the_run_from_being_finished(tmp_path):
    plan = plan_of()

    class Losing(ScriptedLab):
        def __exit__(self, *exception):
            next(Path(tmp_path).rglob("ping/*.txt")).unlink()
            super().__exit__(*exception)

    with pytest.raises(RawDataError, match="no file"):
        go(tmp_path, Losing(REGIONS), plan)
    assert not newest(tmp_path).finished


def test_progress_tells_what_is_done_failed_and_left(tmp_path, capfd):
    run = go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=0, progress=True)
    said = capfd.readouterr().err
    assert said.splitlines()[-1] == "9 of 12 tests done, 3 failed, 0 left"
    assert len(said.splitlines()) == 1 and run.finished
    go(tmp_path, ScriptedLab(REGIONS), retries=0, progress=True)
    assert capfd.readouterr().err == ""


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
from test_measure import REGIONS, go
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
