"""Batches on this machine: what they ask for, what they keep, whatever is killed."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time

import nbformat
import pandas as pd
import pytest
from batch_checkout import batch, contents, folder_of, make_top, pages, processes_of, start, started, states
from patience import comes_about

from wanbench import cli
from wanbench.errors import ParameterError, WanbenchError
from wanbench.publish.batch import BatchJob, prepared, run_job
from wanbench.publish.batch_file import parse_sweep, read_batch
from wanbench.publish.jobs import Job
from wanbench.publish.parameters import Parameter

PAPERMILL = "import sys; sys.modules['rfc3987_syntax'] = None; from papermill.cli import papermill; papermill()"
"""As `python -m papermill`, without the grammar that jsonschema would build for a second."""


@pytest.fixture
def top(tmp_path, monkeypatch):
    return make_top(tmp_path, monkeypatch)


# What is asked for


def test_sweeps_are_lists_ranges_and_yaml():
    text = {"mode": Parameter("mode", "a", str, "")}
    assert parse_sweep("seed=1..5", text) == ("seed", [1, 2, 3, 4, 5])
    assert parse_sweep("loss=0,0.01,1e-3", text) == ("loss", [0, 0.01, 0.001])
    assert parse_sweep("mode=1..5,b", text) == ("mode", ["1..5", "b"])
    assert parse_sweep("pairs=[[a, b], []]", text) == ("pairs", [["a", "b"], []])
    for wrong in ("seed", "=1", "seed=", "seed=5..1", "seed=[]"):
        with pytest.raises(ParameterError, match=r"seed|sweep"):
            parse_sweep(wrong, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", r"x.yml: entry 1 is \[\]; allowed: notebook: a name; parameters, sweep: lines of `name: value`"),
        ("- 02", "entry 1 is 2"),
        ("- {notebook: 2}\n- {notebook: 2, sweeps: {a: [1]}}", "entry 2 is {'notebook': 2, 'sweeps'"),
        ("- {notebook: 2, sweep: {a: 1}}", "entry 1: sweep of 'a' is 1; allowed: a list of values, or a range"),
        ("- {notebook: 2, parameters: [1]}", "entry 1 is"),
    ],
)
def test_a_wrong_batch_file_says_where(tmp_path, text, says):
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(ParameterError, match=says):
        read_batch(tmp_path / "x.yml")


def test_names_say_what_varies_and_are_unique(tmp_path):
    def names(*given, swept=()):
        jobs = [
            BatchJob(Job(tmp_path / "02-a.ipynb", one), tmp_path, tmp_path, varied={k: one[k] for k in swept})
            for one in given
        ]
        return [job.name for job in prepared(jobs)]

    (tmp_path / "02-a.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook()))
    assert names({"a": 1, "b": 2}, {"a": 1, "b": 3}) == ["02-b=2", "02-b=3"]
    assert names({"a": 1}, swept=["a"]) == ["02-a=1"]
    assert names({}, {"a": 1}) == ["02", "02-a=1"]
    odd = names({"a": "x/y"}, {"a": "x y"}, {"a": "v" * 300})
    assert len({*odd}) == 3 and all("/" not in name and len(name) < 200 for name in odd)
    assert odd[0].startswith("02-a=x_y-")
    with pytest.raises(ParameterError, match=r"02-a\.ipynb is in the batch twice with the parameters"):
        names({"a": 1}, {"a": 1})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["00", "01", "--sweep", "slope_ms=1,2"], "01-measuring.ipynb: unknown parameter 'slope_ms'"),
        (
            ["00", "-p", "sed=1"],
            r"00-tiny.ipynb: unknown parameter 'sed' (did you mean 'seed'?); it has seed, slope_ms, mode",
        ),
        (["00", "--sweep", "seed=1,two"], "parameter 'seed' must be int, not 'two' (str)"),
        (["00", "--sweep", "seed=1,2", "-p", "seed=3"], "parameter 'seed' is given twice"),
        (["00", "--sweep", "seed=1..2", "-j", "0"], "-j is 0"),
        (["00", "--name", "../x"], "name of the batch"),
        (["x.yml", "--sweep", "seed=1,2"], "names notebooks and parameters itself"),
    ],
)
def test_every_job_is_checked_before_any_runs(top, capsys, arguments, says):
    assert cli.main(["batch", "--replay", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not list(top.glob("data/scratch/batches/*/*/page")) and not (top / "started").exists()


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path):
    with pytest.raises(
        WanbenchError, match=r"worker .* sees no .*/session: the workers must share the folder of the batch"
    ):
        run_job(BatchJob(Job(tmp_path / "02-a.ipynb"), tmp_path / "none", tmp_path, name="02"), {})


def test_a_worker_with_other_packages_fails_the_job_and_says_so(tmp_path):
    for name in ("02-a.ipynb", "session"):
        (tmp_path / name).touch()
    (tmp_path / "02").mkdir()
    state = run_job(BatchJob(Job(tmp_path / "02-a.ipynb"), tmp_path, tmp_path, name="02", library="another"), {})
    assert state.state == "failed" and "another version of wanbench or of its packages" in state.reason


# Here


@pytest.mark.slow
def test_a_batch_from_a_file_keeps_what_is_done_and_tries_the_rest_again(top):
    (top / "mine.yml").write_text(
        "- notebook: 00\n  parameters: {slope_ms: 3.0}\n  sweep: {seed: 2..2}\n"
        "- {notebook: 00, parameters: {mode: fail}}\n- {notebook: 00, parameters: {mode: kill}}\n"
    )
    said = batch("mine.yml", "-j", 3, status=1)
    folder, good = folder_of(top, "mine"), "00-seed=2-slope_ms=3.0"
    assert states(folder) == {good: "done", "00-mode=fail": "failed", "00-mode=kill": "failed"}
    assert "00-mode=fail: failed: 00-tiny.ipynb: cell 3 of 4, under 'Tiny': ValueError: no such mode" in said
    assert "00-mode=kill: failed: its process ended with status -9: cell 1 of 4: Tiny" in said
    assert "1 of 3 jobs done, 2 failed" in said
    assert "no such mode" in (folder / "00-mode=fail/failed/notebooks/00-tiny.ipynb").read_text()
    assert "all 4 cells ran" in (folder / good / "log.txt").read_text()
    index = (folder / "index.html").read_text()
    assert f'href="{good.replace("=", "%3D")}/page/00-tiny.html"' in index
    assert "no such mode" in index and "http" not in index.replace("http-equiv", "")
    found = pd.read_csv(folder / "results.csv")
    assert found.groupby("state").job.nunique().to_dict() == {"done": 1, "failed": 2}
    (rtt,) = found[found.name == "rtt"].to_dict("records")
    assert {name: rtt[name] for name in ("parameter seed", "estimate", "low", "high")} == {
        "parameter seed": 2, "estimate": 6, "low": 5, "high": 7,
    }  # fmt: skip

    before = pages(folder)
    for job in ("00-mode=fail", "00-mode=kill"):
        path = folder / job / "state.json"
        state = json.loads(path.read_text())
        assert state["failures"] == 1
        path.write_text(json.dumps(state | {"failures": 2}))
    assert f"[1 kept] {good}: kept" in batch("mine.yml", status=1)
    again = [json.loads((folder / job / "state.json").read_text()) for job in ("00-mode=fail", "00-mode=kill")]
    assert [state["failures"] for state in again] == [3, 3], "jobs that failed twice are run again"
    assert "running" not in batch("mine.yml", status=1), "a job that failed three times is not run again"
    (top / "mended").touch()
    assert "3 of 3 jobs done" in batch("mine.yml", "--retry")
    assert set(states(folder).values()) == {"done"} and not (folder / "00-mode=fail/failed").exists()
    assert {good: pages(folder)[good]} == before and comes_about(lambda: not processes_of(top))


@pytest.mark.slow
def test_a_changed_notebook_is_run_again_and_papermill_disturbs_nothing(top):
    arguments = ("00", "--sweep", "seed=1..2", "-p", "mode=good", "--name", "mine")
    batch(*arguments)
    folder = folder_of(top, "mine")
    before = contents(folder)
    assert "Findings of 00-tiny against seed: 2 findings of 2 jobs." in (folder / "index.html").read_text()

    papermill = [sys.executable, "-c", PAPERMILL, "00-tiny.ipynb", str(top / "out.ipynb"), "--no-progress-bar"]
    done = subprocess.run(
        [*papermill, "-p", "sed", "7"], cwd=top / "notebooks", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ParameterError: unknown parameter 'sed'; this notebook has seed, slope_ms, mode." in done.stderr
    (top / "own.yml").write_text("slope_ms: 5.0\n")
    subprocess.run(
        [*papermill, "-p", "seed", "2", "-f", top / "own.yml"], cwd=top / "notebooks", check=True, capture_output=True
    )
    assert json.loads((top / "data/scratch/findings/00-tiny/rtt.json").read_text())["estimate"] == 10
    assert "running" not in batch(*arguments) and contents(folder) == before

    path = top / "notebooks/00-tiny.ipynb"
    path.write_text(path.read_text().replace("RTT is", "The RTT is"))
    assert "running" in batch("00", "--sweep", "seed=2..2", "-p", "mode=good", "--name", "mine")
    assert "The RTT is 4.0 ms." in (folder / "results.csv").read_text()


@pytest.mark.slow
def test_a_batch_killed_at_random_moments_ends_with_every_page_once(top):
    kills, kept, hit = int(os.environ.get("WANBENCH_KILLS", "2")), {}, 0
    seeds, moments = range(1, kills + 2), random.Random(1)
    arguments = ("00", "--sweep", f"seed=1..{seeds[-1]}", "-j", 2, "--name", "mine")
    began = time.monotonic()
    assert start(top, "00", "--sweep", "seed=1..1", "--name", "mine").wait(300) == 0
    job_s = time.monotonic() - began
    for _ in range(kills):
        running = start(top, *arguments)
        time.sleep(moments.uniform(0, 1.5 * job_s))
        running.kill()
        assert running.wait() in (-signal.SIGKILL, 0)
        hit += running.returncode != 0
        now = pages(folder_of(top, "mine"))
        assert {name: now[name] for name in kept} == kept, "what was done is as it was"
        kept = now
    said = batch(*arguments)
    folder = folder_of(top, "mine")
    assert f"{len(seeds)} of {len(seeds)} jobs done, 0 failed" in said
    assert pages(folder).keys() == {f"00-seed={seed}" for seed in seeds}
    assert {name: pages(folder)[name] for name in kept} == kept
    assert not list(folder.glob("*/.page-*")) and set(states(folder).values()) == {"done"}
    found = pd.read_csv(folder / "results.csv")
    assert sorted(found[found.name == "rtt"].estimate) == [2 * seed for seed in seeds]
    begun = len(list((top / "started").iterdir()))
    print(f"{len(kept)} of {len(seeds)} jobs done after {kills} kills, {hit} of them of a command; {begun} begun")
    assert comes_about(lambda: not processes_of(top))


@pytest.mark.slow
def test_an_interrupt_stops_the_jobs_and_a_second_command_is_told_of_the_first(top):
    (top / "hold-2").touch()
    arguments = ("00", "--sweep", "seed=1..2", "-j", 1, "--name", "mine")
    running = start(top, *arguments)
    try:
        assert comes_about(lambda: started(top, 2))
        assert "another command runs the batch" in batch(*arguments, status=2)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    finally:
        running.kill()
    folder = folder_of(top, "mine")
    assert comes_about(lambda: not processes_of(top))
    assert states(folder) == {"00-seed=1": "done", "00-seed=2": "queued"}
    assert "1 done, 1 queued" in (folder / "index.html").read_text()
    (top / "hold-2").unlink()
    assert "2 of 2 jobs done" in batch(*arguments)
    assert [started(top, seed) for seed in (1, 2)] == [1, 2]


@pytest.mark.slow
def test_measuring_jobs_run_one_at_a_time_and_say_when_another_run_measures(top, tmp_path):
    with open(tmp_path / "wanbench-measuring", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        environment = {"TMPDIR": str(tmp_path), "WANBENCH_SHARE_MACHINE": ""}
        running = start(top, "01", "--sweep", "seed=1..2", "-j", 2, **environment)
        try:
            told = "01-seed=1: Another run measures on this machine: waiting for its end"
            assert comes_about(lambda: told in (top / "driver.log").read_text())
            assert not (top / "measured").exists()
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert running.wait(120) == 0
        finally:
            running.kill()
    first, second = [list(map(float, line.split())) for line in (top / "measured").read_text().splitlines()]
    assert first[1] <= second[0]
