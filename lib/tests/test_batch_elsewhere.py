"""Batches in a bucket and on a Dask cluster, whatever is killed."""

import os
import signal
import tempfile
from itertools import pairwise

import pytest
from aws_driver import moto_server
from batch_checkout import (
    batch,
    batch_on_a_cluster,
    contents,
    folder_of,
    make_top,
    pages,
    processes_of,
    start,
    started,
    states,
)
from dask_cluster import Relay, cluster
from patience import comes_about
from pyarrow import fs

from wanbench import cli


@pytest.fixture
def top(tmp_path, monkeypatch):
    return make_top(tmp_path, monkeypatch)


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
        (temporary / "wanbench-bucket-half/00-seed=1").mkdir(parents=True)  # of a command killed while it removed it
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
