"""
Keep a batch in a bucket: each job runs in a temporary folder, and copies its files to the bucket.

A page's record, which marks the page as complete, is copied last. The command that runs the batch works on a local copy
of the batch's folder. pyarrow copies the files: unlike s3fs, it is a dependency of wanbench anyway and does not
restrict the version of boto3.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pyarrow import ArrowInvalid, fs

from wanbench.checks import refusal
from wanbench.errors import ParameterError, WanbenchError

from .batch import SESSION, BatchJob, Driver, State, run_batch, run_job

RECORDS = "pages"  # The folder of a page with its record.
PREFIX, LOCK = "wanbench-bucket-", ".lock"


class Bucket:
    """
    Copy files to and from a batch's folder in a bucket.

    The address has the form "s3://bucket/prefix/name"; raise ParameterError for any other, also with a key inside.
    """

    def __init__(self, address: str):
        if "@" in address:  # pages and logs would show the key
            raise refusal("--to", address, "an address without a key, which AWS_SECRET_ACCESS_KEY holds")
        try:
            self.files, self.path = fs.FileSystem.from_uri(address)
        except ArrowInvalid as error:
            raise refusal("--to", address, f"an address such as s3://bucket/prefix ({error})") from None

    def put(self, folder: Path, *names: str) -> None:
        """Copy files and folders to the bucket, in this order; leave out those that do not exist."""
        for name in names:
            if (folder / name).exists():
                fs.copy_files(str(folder / name), f"{self.path}/{name}", destination_filesystem=self.files)

    def get(self, folder: Path, *names: str) -> None:
        """Copy files and folders from the bucket; leave out those that do not exist."""
        for name in names:
            with suppress(FileNotFoundError):
                fs.copy_files(f"{self.path}/{name}", str(folder / name), source_filesystem=self.files)

    def session(self) -> str:
        """Return the id of the command that runs the batch, or "" if the command has ended."""
        with self.files.open_input_stream(f"{self.path}/{SESSION}") as file:
            return file.read().decode()


bucket_at = cache(Bucket)  # each new one asks where the bucket is


class FarJob(BatchJob):
    """A job whose batch is kept in a bucket."""

    def is_wanted(self) -> bool:
        """Return whether the command that started this job still runs the batch: the bucket has its session id."""
        return bucket_at(self.to).session() == self.session


@contextmanager
def _temporary() -> Generator[Path]:
    """Yield a temporary folder, after removing those whose process was killed: nobody holds their locks."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), open(left / LOCK, "a") as lock:  # gone if a kill interrupted a removal
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left)
    hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    with open(hidden / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run_in_bucket(jobs: Sequence[BatchJob], processes: int | None, cluster: str | None, retry: bool) -> list[State]:
    """
    Run a batch whose jobs name a bucket, as `run_batch` does.

    Raise ParameterError if a job measures.
    """
    if any(job.measures for job in jobs):
        raise ParameterError("--to with a notebook that measures here; allowed: notebooks that analyse.")
    with _temporary() as folder:
        copy = folder / jobs[0].folder.name
        copies = [FarJob(**{**vars(job), "folder": copy}) for job in jobs]
        return run_batch(copies, processes, cluster, retry, FarDriver)


def run_far(job: BatchJob, environment: Mapping[str, str]) -> State:
    """Run a job as `run_job` does, but in a temporary folder; copy its log, page and state to the job's bucket."""
    bucket = bucket_at(job.to)
    with _temporary() as folder:
        here = replace(job, folder=folder)
        here.path.mkdir()
        bucket.get(here.folder, SESSION, f"{job.name}/state.json", f"{job.name}/log.txt")
        if not job.is_wanted():  # the state belongs to the command that has taken over
            return State()
        here.put("running")
        bucket.put(here.folder, f"{job.name}/state.json")
        state = run_job(here, environment)
        if job.is_wanted():
            parts = sorted((one.name for one in (here.path / "page").glob("*")), key=lambda name: name == RECORDS)
            names = ("log.txt", "failed", *(f"page/{one}" for one in parts), "state.json")
            bucket.put(here.folder, *(f"{job.name}/{name}" for name in names))
        return state


class FarDriver(Driver):
    """Run a batch in a bucket, on a local copy of its folder, until a later command takes the batch over."""

    run_job = staticmethod(run_far)

    def __init__(self, jobs: Sequence[BatchJob], retry: bool):
        self.bucket, self.folder, self.session = bucket_at(jobs[0].to), jobs[0].folder, jobs[0].session
        self.bucket.put(self.folder, SESSION)  # from now on, jobs of earlier commands stop
        self.bucket.get(self.folder, *(job.name for job in jobs))
        super().__init__(jobs, retry)
        for name, state in self.states.items():
            made = (f"{name}/page/{RECORDS}", f"{name}/page", f"{name}/failed")
            for part in made if state.state == "queued" else ():
                shutil.rmtree(self.folder / part, ignore_errors=True)
                self.bucket.files.delete_dir_contents(f"{self.bucket.path}/{part}", missing_dir_ok=True)
            self.bucket.put(self.folder, f"{name}/state.json")

    def _ended(self, future: Any, job: BatchJob) -> State:
        self.bucket.get(self.folder, job.name)
        state = super()._ended(future, job)
        if not job.is_wanted():
            raise WanbenchError(f"another command has taken over the batch {job.to}.")
        self.bucket.put(self.folder, f"{job.name}/state.json")
        return state

    def _end(self) -> None:
        super()._end()
        if self.bucket.session() == self.session:
            self.bucket.put(self.folder, SESSION)

    def _write_page(self) -> None:
        self.bucket.get(self.folder, *(f"{name}/state.json" for name in self.states))
        super()._write_page()
        if self.bucket.session() in ("", self.session):
            self.bucket.put(self.folder, "assets", "figures", "results.csv", "index.html")
