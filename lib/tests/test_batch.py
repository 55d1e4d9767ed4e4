"""Batches: what they ask for, what they keep, whatever is killed, here and on a Dask cluster."""

import fcntl
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import pairwise
from multiprocessing import forkserver
from pathlib import Path
from unittest.mock import patch

import nbformat
import pandas as pd
import pytest
from aws_driver import moto_server
from dask_cluster import Relay, cluster
from example_site import make_checkout
from patience import comes_about
from pyarrow import fs

from wanbench import cli
from wanbench.errors import ParameterError, WanbenchError
from wanbench.publish import batch as batches
from wanbench.publish.batch import BatchJob, prepared, run_job
from wanbench.publish.batch_file import parse_sweep, read_batch
from wanbench.publish.jobs import Job
from wanbench.publish.parameters import Parameter

DATA = Path(__file__).parents[2] / "data"
PARAMETERS = """\
seed = 1  # the only thing that varies
slope_ms = 2.0  # of the line
mode = "good"  # what the page does"""
WORK = """\
import multiprocessing
import os
import time
from itertools import pairwise
from pathlib import Path

from wanbench.findings import Finding, Page

page = Page("00-tiny")
Path("../started").mkdir(exist_ok=True)
Path(f"../started/{seed}-{time.time_ns()}").touch()
while Path(f"../hold-{seed}").exists():
    time.sleep(0.05)
if mode == "fail" and not Path("../mended").exists():
    raise ValueError("no such mode")
if mode == "kill" and not Path("../mended").exists():
    os.kill(multiprocessing.parent_process().pid, 9)
    time.sleep(60)"""
FOUND = """\
rtt = seed * slope_ms
page.add(Finding("rtt", f"RTT is {rtt} ms.", rtt, rtt - 1, rtt + 1, "ms", 5, None, "by hand", "none"))
page.answer(Finding("seed", "A seed.", seed, None, None, "", 5, None, "", ""))
page"""
MEASURED = """\
import time
from itertools import pairwise
from pathlib import Path

from wanbench.measure.campaign.start import _one_at_a_time

with _one_at_a_time():
    began = time.time()
    time.sleep(0.3)
    with open("../measured", "a") as file:
        print(began, time.time(), file=file)"""
NAME = "00-seed-"
PAPERMILL = "import sys; sys.modules['rfc3987_syntax'] = None; from papermill.cli import papermill; papermill()"
"""As `python -m papermill`, without the grammar that jsonschema would build for a second."""
MAIN = [sys.executable, "-c", "import sys; from wanbench.cli import main; sys.exit(main())"]


@pytest.fixture
def top(tmp_path, monkeypatch):
    """A checkout with a notebook that takes a moment, and one that says it measures."""
    tiny = [("text", "# Tiny"), ("parameters", PARAMETERS), ("code", WORK), ("code", FOUND)]
    measuring = [("text", "# Lab"), ("parameters", 'seed = 1  # seed\nlab = "ssh"  # lab'), ("code", MEASURED)]
    made = make_checkout(tmp_path / "top", {"00-tiny": tiny, "01-measuring": measuring})
    for path in (made / "notebooks").iterdir():
        content = nbformat.read(path, 4)
        content.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(content, path)
    (made / "data").mkdir()
    for name in ("published", "samples", "validity"):
        (made / "data" / name).symlink_to(DATA / name)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    forkserver.ensure_running()  # in a folder that stays, with all that it starts
    monkeypatch.chdir(made)
    return made


def start(top, *arguments, **environment):
    """Start `wanbench batch`, with its output in `driver.log`."""
    with open(top / "driver.log", "ab") as log:
        command = [*MAIN, "batch", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=top, stdout=log, stderr=log, env={**os.environ, **environment}, start_new_session=True
        )


def batch(*arguments, status=0):
    """Run `wanbench batch` in this process to its end, in whose folder it is, and return what it said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), patch.object(batches, "tell", partial(print, file=said)):
        found = cli.main(["batch", *map(str, arguments)])
    assert found == status, said.getvalue()
    return said.getvalue()


def batch_on_a_cluster(top, *arguments, status=0, **environment):
    """Run `wanbench batch` to its end in a process of its own, as a cluster's client stays, and return what it said."""
    (top / "driver.log").unlink(missing_ok=True)
    running = start(top, *arguments, **environment)
    try:
        found = running.wait(300)
    finally:
        running.kill()
    said = (top / "driver.log").read_text()
    assert found == status, said
    return said


def folder_of(top, name=None):
    (found,) = (top / "data/scratch/batches").glob(name or "*")
    return found


def pages(folder):
    """Each page that is there, with the moment and the inode by which a second one would be told from the first."""
    return {
        one.parents[1].name: (one.stat().st_ino, one.stat().st_mtime_ns) for one in folder.glob("*/page/00-tiny.html")
    }


def contents(folder):
    """Every file of all pages, with its content."""
    files = [one for one in folder.glob("*/page/**/*") if one.is_file() and "assets" not in one.parts]
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


def states(folder):
    return {one.parent.name: json.loads(one.read_text())["state"] for one in folder.glob("*/state.json")}


def started(top, seed):
    return len(list((top / "started").glob(f"{seed}-*"))) if (top / "started").exists() else 0


def processes_of(top):
    """Processes whose working directory is the checkout or its notebooks."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            where, state = os.readlink(one / "cwd"), (one / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if where.startswith(str(top)) and state != "Z" and int(one.name) != os.getpid():
            found.append(int(one.name))
    return found


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
    assert "[1 kept, 2 running]" in batch("mine.yml", status=1)
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


# In a bucket


@pytest.mark.slow
def test_a_batch_in_a_bucket_resumes_after_a_kill_and_has_the_files_of_a_local_one(top, tmp_path, monkeypatch):
    arguments, bucket, temporary = ("00", "--sweep", "seed=1..2", "-j", 2), tmp_path / "bucket", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with moto_server() as (address, _):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "none")
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        files = fs.S3FileSystem(endpoint_override=address, allow_bucket_creation=True)
        files.create_dir("mine")

        def there():
            return {one.path for one in files.get_file_info(fs.FileSelector("mine", recursive=True))}

        def record(seed):
            return f"mine/batches/far/00-seed={seed}/page/pages/00-tiny.json"

        (top / "hold-2").touch()
        running = start(top, *arguments, "--name", "far", "--to", "s3://mine/batches/")
        assert comes_about(lambda: record(1) in there() and started(top, 2)), (top / "driver.log").read_text()
        running.kill()
        assert running.wait() == -signal.SIGKILL and comes_about(lambda: not processes_of(top))
        made = files.get_file_info(record(1)).mtime
        (top / "hold-2").unlink()
        assert list(temporary.glob("wanbench-*")), "a killed command leaves its folders"
        # A job that was killed while it copied: the page without its record.
        with files.open_output_stream("mine/batches/far/00-seed=2/page/findings/00-tiny/gone.json") as half:
            half.write(b"{")
        said = batch(*arguments, "--name", "far", "--to", "s3://mine/batches")
        assert "[1 kept] 00-seed=1: kept" in said
        assert "2 of 2 jobs done, 0 failed. Open s3://mine/batches/far/index.html" in said
        assert not list(temporary.glob("*wanbench-*")), "the next one removes them"
        assert files.get_file_info(record(1)).mtime == made and [started(top, seed) for seed in (1, 2)] == [1, 2]
        fs.copy_files("mine/batches/far", str(bucket), source_filesystem=files)
    assert not list(top.glob("data/scratch/batches/*")), "nothing stays here"
    batch(*arguments, "--name", "here")
    assert len(contents(bucket)) > 10 and contents(bucket) == contents(folder_of(top, "here"))
    assert states(bucket) == dict.fromkeys(["00-seed=1", "00-seed=2"], "done")
    for name in ("results.csv", "assets/site.css"):
        assert (bucket / name).read_bytes() == (folder_of(top, "here") / name).read_bytes()
    assert "Findings of 00-tiny against seed: 2 findings of 2 jobs." in (bucket / "index.html").read_text()
    assert 'href="../../assets/site.css"' in (bucket / "00-seed=1/page/00-tiny.html").read_text()


def test_what_cannot_be_kept_in_a_bucket_is_refused(top, capsys):
    for to, what, says in (
        ("nowhere", ["00", "--replay"], "--to is 'nowhere/mine'; allowed: an address such as s3://bucket/prefix"),
        ("s3://mine", ["01"], "--to with a notebook that measures here; allowed: notebooks that analyse"),
    ):
        assert cli.main(["batch", *what, "--name", "mine", "--to", to]) == 2
        assert says in capsys.readouterr().err


# On a cluster


@pytest.mark.slow
def test_a_lost_worker_and_a_cut_connection_lose_nothing_and_the_pages_are_those_of_a_local_batch(top, tmp_path):
    arguments = ("00", "--sweep", "seed=1..3")
    for seed in (1, 2, 3):
        (top / f"hold-{seed}").touch()
    with cluster(tmp_path / "cluster") as (address, workers):
        relay = Relay(address)
        running = start(top, *arguments, "--name", "far", "--cluster", relay.address)
        try:
            assert comes_about(lambda: started(top, 1) and started(top, 2))
            workers[0].kill()
            (top / "hold-1").unlink()
            (top / "hold-2").unlink()
            assert comes_about(lambda: started(top, 3))
            relay.cut()
            assert running.wait(120) == 2
        finally:
            running.kill()
        said = (top / "driver.log").read_text()
        assert "2 workers at tcp://127.0.0.1:" in said
        assert "the connection to the scheduler is lost. Jobs that are done are kept; repeat the command" in said
        folder = folder_of(top, "far")
        kept = pages(folder)
        assert kept and "00-seed=3" not in kept
        (top / "hold-3").unlink()
        said = batch_on_a_cluster(top, *arguments, "--name", "far", "--cluster", address)
    assert "1 worker at" in said and "3 of 3 jobs done, 0 failed" in said and f"[{len(kept)} kept, " in said
    assert {name: pages(folder)[name] for name in kept} == kept
    assert not list(folder.glob("*/.page-*"))
    batch(*arguments, "--name", "here")
    assert len(pages(folder)) == 3 and contents(folder) == contents(folder_of(top, "here"))
    assert (folder / "results.csv").read_bytes() == (folder_of(top, "here") / "results.csv").read_bytes()


@pytest.mark.slow
def test_measuring_jobs_wait_for_a_worker_with_the_resource(top, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with cluster(tmp_path / "cluster", resources=["measure=1"], environment=environment) as (address, _):
        said = batch_on_a_cluster(top, "01", "--sweep", "seed=1..2", "--cluster", address)
    assert "2 workers" in said and "1 with the resource measure" in said and "2 of 2 jobs done" in said
    times = sorted(list(map(float, line.split())) for line in (top / "measured").read_text().splitlines())
    assert len(times) == 2 and all(one[1] <= other[0] for one, other in pairwise(times))


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_said_so(top):
    short = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    said = batch_on_a_cluster(top, "00", "--cluster", "tcp://127.0.0.1:9", status=2, **short)
    assert "wanbench: " in said and "tcp://127.0.0.1:9" in said and "Traceback" not in said
