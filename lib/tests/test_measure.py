"""Measuring on a scripted lab: order, failures, retries, what is kept."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from measuring import REGIONS, failing, go, newest, outcomes, plan_of, stopping_after
from scripted_lab import Reply, ScriptedLab, well

from wanbench.errors import LabError, ParameterError, RawDataError
from wanbench.runs import overlaps

DEVICE = {"region": "aws:r-1", "device": "lo", "packets_received": 5, "packets_dropped_receiving": 1}


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
                raise LabError("the supervisor is gone")
            return super().describe()

    def script(host, command):
        raise LabError("cannot start")

    with pytest.raises(LabError, match="the supervisor is gone"):
        go(tmp_path, Dying(REGIONS, script))
    run = newest(tmp_path)
    assert not run.finished and len(run.tests()) == 2
    assert go(tmp_path, ScriptedLab(REGIONS)).finished


def test_a_run_in_which_no_test_was_done_stays_open(tmp_path):
    def script(host, command):
        return Reply(b"", b"iperf3: broken\n", 1) if command[0] == "iperf3" else well(host, command)

    with pytest.raises(LabError, match=r"12 of 12 tests failed.*iperf3: broken.*stays open: remove the cause"):
        go(tmp_path, ScriptedLab(REGIONS, script), retries=0)
    run = newest(tmp_path)
    assert not run.finished and run.events()[-1]["event"] == "interrupted"
    again = go(tmp_path, ScriptedLab(REGIONS), retries=0)
    assert again.folder == run.folder and again.finished and "12 of 12 done, 0 failed" in str(again)


def test_tests_that_the_machine_failed_keep_the_run_open_and_are_tried_again(tmp_path):
    def script(host, command):
        if command[0] == "ping" and host.region == "gcp:r-3":
            return Reply(b"", b"ping: write error: No space left on device\n", 2)
        return failing("aws:r-1", "ping", 10**9)(host, command)

    with pytest.raises(LabError, match=r"3 of 12 tests failed because of the machine.*No space left"):
        go(tmp_path, ScriptedLab(REGIONS, script), retries=0)
    run = newest(tmp_path)
    assert not run.finished and len(run.failures()) == 6
    again = go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=0)
    assert again.folder == run.folder and again.finished
    assert {a.from_region for a in again.failures().values()} == {"aws:r-1"}, "these have been tried enough"
    assert sorted(outcomes(again).values()) == [["done"]] * 6 + [["failed"]] * 3 + [["failed", "done"]] * 3


def test_failed_tests_of_a_finished_run_are_tried_again_on_request(tmp_path, capfd):
    run = go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=0)
    assert go(tmp_path, ScriptedLab(REGIONS), retries=0).tests().equals(run.tests())
    assert "3 of 12 tests failed; --retry-failed measures these again" in capfd.readouterr().err
    lab = ScriptedLab(REGIONS)
    again = go(tmp_path, lab, retries=0, retry_failed=True)
    again.verify()
    assert again.folder == run.folder and again.finished and lab.opened == 1
    assert sorted(outcomes(again).values()) == [["done"]] * 9 + [["failed", "done"]] * 3
    assert go(tmp_path, lab, retries=0, retry_failed=True).finished and lab.opened == 1, "nothing has failed"


def test_tests_that_the_machine_failed_when_tried_again_are_tried_once_more(tmp_path):
    go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=0)

    def full(host, command):
        return Reply(b"", b"ping: write error: No space left on device\n", 2)

    with pytest.raises(LabError, match="3 of 12 tests failed because of the machine"):
        go(tmp_path, ScriptedLab(REGIONS, full), retries=0, retry_failed=True)
    run = go(tmp_path, ScriptedLab(REGIONS), retries=0)
    assert run.finished and "12 of 12 done, 0 failed" in str(run)


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
    assert run.events()[-1]["event"] == "interrupted" and "ZeroDivisionError: bug" in run.events()[-1]["reason"]
    assert go(tmp_path, ScriptedLab(REGIONS)).finished


def test_a_region_that_the_lab_lacks_is_said_before_anything_is_measured(tmp_path):
    lab = ScriptedLab(REGIONS[:3])
    with pytest.raises(ParameterError, match="no host in gcp:r-4; it has aws:r-1, aws:r-2, gcp:r-3"):
        go(tmp_path, lab)
    assert lab.closed == 1 and lab.processes == [] and list((tmp_path / "raw/test").iterdir()) == []


@pytest.mark.parametrize("retries", [-1, 1.5, None, True])
def test_retries_are_checked(tmp_path, retries):
    with pytest.raises(ParameterError, match="retries"):
        go(tmp_path, ScriptedLab(REGIONS), retries=retries)


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

        def devices(self):
            return [DEVICE]

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Counting(REGIONS, stopping_after(5, lambda: os.kill(os.getpid(), signal.SIGINT))))
    run = go(tmp_path, Counting(REGIONS))
    for what, rows in (("links", []), ("devices", [DEVICE])):
        kept = [f["path"] for f in run.raw_files() if f["experiment"] == what]
        assert kept == [f"{what}/counters.json", f"{what}/counters.2.json"]
        assert [json.loads((run.folder / path).read_text()) for path in kept] == [rows] * 2


@pytest.mark.parametrize(("spoil", "found"), [(Path.unlink, "no file"), (Path.touch, "[0-9a-f]{64}")])
def test_a_raw_file_that_is_lost_or_changed_stops_the_run_from_being_finished(tmp_path, spoil, found):
    class Losing(ScriptedLab):
        def __exit__(self, *exception):
            file = next(Path(tmp_path).rglob("ping/*.txt"))
            file.write_bytes(b"")
            spoil(file)
            super().__exit__(*exception)

    with pytest.raises(RawDataError, match=f"expected SHA-256 [0-9a-f]{{64}}, found '{found}'"):
        go(tmp_path, Losing(REGIONS))
    assert not newest(tmp_path).finished


def test_progress_tells_what_is_done_failed_and_left(tmp_path, capfd):
    run = go(tmp_path, ScriptedLab(REGIONS, failing("aws:r-1", "ping", 10**9)), retries=0)
    printed = capfd.readouterr().err
    assert printed.splitlines()[-1] == "9 of 12 tests done, 3 failed, 0 left"
    assert len(printed.splitlines()) == 1 and run.finished
    go(tmp_path, ScriptedLab(REGIONS), retries=0)
    assert "is finished, but 3 of 12" in capfd.readouterr().err
