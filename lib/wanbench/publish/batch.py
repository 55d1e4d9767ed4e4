"""
Run a batch: notebooks with many sets of parameters; each set is a job with its own folder.

Each job is a process on this machine, or on a worker of a Dask cluster that sees the same folder. A job writes its page
in a temporary folder, which is renamed when the page is complete, with a hash of the page's sources. After any kill,
the same command keeps jobs with a page and runs the others.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from wanbench.checks import LATER, check_number, refusal
from wanbench.errors import ParameterError, WanbenchError
from wanbench.files import replace_file
from wanbench.folders import scratch_folder
from wanbench.formatting import count

from .batch_page import tidy, write_batch_page
from .forks import fork, settle, starter
from .parameters import file_hashes
from .site import Job, Site, library_hash, library_hash_now, publish_page, sources_hash

POLL_S = 0.2
ASK_S = 5.0  # A job asks a bucket this often whether its command still runs: requests cost money.
PAGE_S = 60.0  # The page of a running batch is at most this old: to write it takes up to a second.
SAYS_S = 10.0  # A measuring job's last line is repeated at most this often.
GRACE_S = 10.0  # A notebook that analyses gets this time to stop; one that measures gets what its lab needs.
FAILURES = 3  # A job that failed this often is run again only if asked for: the next failure would look the same.
NAME_CHARACTERS = 120  # Longest name of a job; file systems allow 255 bytes.
SESSION = "session"
STATES = ("done", "kept", "running", "failed", "queued")


def batch_folder(name: str) -> Path:
    """Return the folder of a batch. Raise ParameterError if `name` is not a plain folder name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._=+-]*", name):
        raise refusal("name of the batch", name, "letters, digits, and any of . _ = + - after the first")
    return scratch_folder() / "batches" / name


@dataclass(frozen=True)
class State:
    """
    The state of a job: "queued", "running", "done", "failed" with its `reason`, or "kept" (done by an earlier command).

    `failures` counts failures since the job's sources last changed; `made_from` is the hash of these sources.
    """

    state: str = "queued"
    reason: str = ""
    failures: int = 0
    made_from: str = ""


@dataclass(frozen=True)
class BatchJob:
    """
    A page to make as part of a batch.

    `folder` is the batch's folder, and `root` the checkout. `varied` has the parameters in which the batch's jobs with
    this notebook differ. `session` identifies the command that runs the batch, and `library` is the hash of wanbench
    and the installed packages on the machine of that command. `to` is the address of the batch's folder in a bucket, or
    "" if the batch is on this machine.
    """

    page: Job
    folder: Path
    root: Path
    measures: bool = False
    varied: Mapping[str, object] = field(default_factory=dict)
    name: str = ""
    session: str = ""
    library: str = ""
    to: str = ""

    @property
    def path(self) -> Path:
        """Return the folder of the job."""
        return self.folder / self.name

    @property
    def site(self) -> Site:
        """Return the site with the job's page, which appears only when it is complete."""
        return self._site(self.path / "page")

    def _site(self, folder: Path) -> Site:
        return Site(self.root, folder, folder, folder / "findings", is_scratch=True)

    def is_done(self) -> bool:
        """Return whether the page exists and was made from the present sources."""
        record = self.site.record(self.page.notebook.stem)
        return record.outcome == "published" and record.made_from == self.page.made_from

    def is_wanted(self) -> bool:
        """Return whether the command that started this job still runs the batch."""
        with suppress(OSError):
            return (self.folder / SESSION).read_text() == self.session
        return False

    def state(self) -> State:
        """Read the state of the job."""
        try:
            return State(**json.loads((self.path / "state.json").read_bytes()))
        except (OSError, ValueError, TypeError):  # TypeError: the file of another version
            return State()

    def put(self, state: str, **more: object) -> State:
        """Write the job's state, with other fields from `more`, and return it."""
        new = replace(self.state(), **{"reason": "", "made_from": self.page.made_from} | more, state=state)
        replace_file(self.path / "state.json", (json.dumps(asdict(new), ensure_ascii=False) + "\n").encode())
        return new

    def fail(self, reason: str) -> State:
        """Write that the job failed, and why; return its new state."""
        return self.put("failed", reason=reason, failures=self.state().failures + 1)

    def says(self) -> str:
        """Return the last line of the job's log."""
        log = self.path / "log.txt"
        return log.read_text(errors="replace").strip().rpartition("\n")[2].strip() if log.exists() else ""

    def make(self) -> None:
        """Make the page in a temporary folder, and move it to `page`, or to `failed` if it failed."""
        for left in self.path.glob(".page-*"):
            shutil.rmtree(left, ignore_errors=True)
        self.put("running")
        made, kept = Path(tempfile.mkdtemp(prefix=".page-", dir=self.path)), self.path / "page"
        try:
            reason = publish_page(self.page, self._site(made), None, sys.stderr)
            if not self.is_wanted():
                raise KeyboardInterrupt
            kept = self.path / "failed" if reason else kept
            tidy(self._site(made).executed_path(self.page.notebook.stem), made)
            for earlier in {kept, self.path / "failed"}:
                shutil.rmtree(earlier, ignore_errors=True)
            made.rename(kept)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self.fail(reason) if reason else self.put("done", failures=0)


def run_job(job: BatchJob, environment: Mapping[str, str]) -> State:
    """
    Run a job in a new process on this machine until it ends or the batch's command has ended; return the job's state.

    `environment` has further environment variables for the process. Raise WanbenchError if this machine does not see
    the batch's folder or the checkout.
    """
    for path in (job.folder / SESSION, job.page.notebook):
        if not path.exists():
            why = "the workers must share the folder of the batch"
            raise WanbenchError(f"worker {platform.node()} sees no {path}: {why}.")
    if not job.is_wanted():
        return State()
    child = fork(_make, job, {**os.environ, **environment})
    child.join()
    if (state := job.state()).state in ("done", "failed"):
        return state
    return job.fail(f"its process ended with status {child.exitcode}: {job.says()}") if job.is_wanted() else State()


def _make(job: BatchJob, environment: Mapping[str, str]) -> None:
    """Make the page of a job in this process; stop when its command no longer runs the batch, or is gone."""
    with open(job.path / "log.txt", "ab") as log:
        settle(job.root, environment, log.fileno(), log.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    threading.Thread(target=_stop_when_unwanted, args=[job], daemon=True).start()
    # an earlier process of the job may still be stopping
    with suppress(KeyboardInterrupt), _locked(job.path / ".lock"):
        if job.is_done():
            job.put("done", failures=0)
        elif job.library != library_hash(strict=False) or job.library != library_hash_now(strict=False):
            other = "has another version of wanbench or of its packages than the machine of the command"
            job.fail(f"worker {platform.node()} {other}: install the same on both, and start the worker again.")
        elif job.is_wanted():
            job.make()


def _stop_when_unwanted(job: BatchJob) -> None:
    command = starter()
    try:
        while command.is_alive() and job.is_wanted():
            command.join(ASK_S if job.to else POLL_S)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        if not job.measures:
            time.sleep(GRACE_S)
            os._exit(130)


@contextmanager
def _locked(path: Path, otherwise: str = "") -> Generator[None]:
    """Hold the lock of a file; if another process holds it, wait, or raise WanbenchError with the text `otherwise`."""
    with open(path, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if otherwise else 0))
        except BlockingIOError:
            raise WanbenchError(otherwise) from None
        yield


def prepared(jobs: Sequence[BatchJob]) -> list[BatchJob]:
    """
    Return the jobs of a batch, each with a name and the hash of its sources.

    A name has the notebook's number, the swept values, and other values in which the jobs with this notebook differ.
    Raise ParameterError if two jobs are the same.
    """
    of, values = Counter(job.page.notebook for job in jobs), {}
    for job in jobs:
        for key, value in job.page.given.items():
            values.setdefault((job.page.notebook, key), []).append(repr(value))
    numbers = Counter(notebook.stem.partition("-")[0] for notebook in of)
    sources = {one: sources_hash(one, {}, [], jobs[0].root, strict=False) for one in of}
    made: dict[str, BatchJob] = {}
    for job in jobs:
        notebook, given, name = job.page.notebook, job.page.given, job.page.notebook.stem
        found = {key: values[notebook, key] for key in given}
        differ = [key for key in given if len({*found[key]}) > 1 or len(found[key]) < of[notebook]]
        varied = {key: given[key] for key in dict.fromkeys([*job.varied, *differ])}
        number = name.partition("-")[0]
        exact = "-".join([number if numbers[number] == 1 else name, *(f"{key}={varied[key]}" for key in varied)])
        name = re.sub(r"[^A-Za-z0-9.=+-]+", "_", exact)
        if name != exact or len(name) > NAME_CHARACTERS:
            name = f"{name[:NAME_CHARACTERS]}-{hashlib.sha256(exact.encode()).hexdigest()[:8]}"
        if name in made:
            raise ParameterError(f"{notebook.name} is in the batch twice with the parameters {dict(given)}.")
        told = [sorted(given.items()), job.page.replay_reason, job.page.remark, file_hashes(given, notebook)]
        made_from = hashlib.sha256(f"{sources[notebook]} {told!r}".encode()).hexdigest()
        page = replace(job.page, made_from=made_from)
        made[name] = replace(job, name=name, varied=varied, page=page, library=library_hash(strict=False))
    return [*made.values()]


def run_batch(
    jobs: Sequence[BatchJob], processes: int | None, cluster: str | None, retry: bool, kind: type[Driver] | None = None
) -> list[State]:
    """
    Run the jobs of a batch that have no page yet, write the page of the batch, and return the state of each job.

    Jobs that only analyse run first: `processes` at a time (None: one for each processor), or on the workers of the
    Dask scheduler at the address `cluster`. Jobs that measure follow: one at a time, or on those workers that have the
    resource `measure`. The next command runs a failed job again, until the job has failed `FAILURES` times; with
    `retry`, always. `kind` is the class that runs the batch, by default `Driver`. Raise WanbenchError if another
    command runs the batch, or if the connection to the scheduler is lost.
    """
    processes = len(os.sched_getaffinity(0)) if processes is None else check_number("-j", processes, 1, whole=True)
    jobs, folder = prepared(jobs), jobs[0].folder
    folder.mkdir(parents=True, exist_ok=True)
    session = os.urandom(8).hex()
    with _locked(folder / ".lock", f"another command runs the batch {folder}; wait for its end."):
        replace_file(folder / SESSION, session.encode())
        Site(jobs[0].root, folder, folder, folder).write_assets()
        driver = (kind or Driver)([replace(job, session=session) for job in jobs], retry)
        return driver.run(_cluster(cluster) if cluster else _local(processes))


tell = partial(print, file=sys.stderr, flush=True)


class Driver:
    """Submit the jobs of a batch, print changes of their states, and write the batch's page."""

    run_job = staticmethod(run_job)

    def __init__(self, jobs: Sequence[BatchJob], retry: bool):
        self.jobs, self.states, self._page_s, self._said = jobs, {}, -PAGE_S, {}
        for job in jobs:
            self._show(job, _begin(job, retry))

    def run(self, pools: AbstractContextManager[Callable[..., Any]]) -> list[State]:
        """
        Run the queued jobs and return the states of all jobs.

        `pools` is a context manager whose value is `submit(run, job, *more)`, a function that starts `run` and returns
        its future.
        """
        waiting = [job for job in self.jobs if self.states[job.name].state == "queued"]
        environment = {name: value for name, value in os.environ.items() if name.startswith("WANBENCH_")}
        try:
            with ExitStack() as stack:
                submit = stack.enter_context(pools) if waiting else LATER
                stack.callback(self._end)  # first: jobs that still run then stop
                for measures in (False, True):  # one after the other: an analysis beside a measurement distorts it
                    self._watch(
                        {submit(self.run_job, job, environment): job for job in waiting if job.measures == measures}
                    )
        finally:
            for job in waiting:
                if self.states[job.name].state in ("queued", "running"):
                    self.states[job.name] = job.put("done" if job.is_done() else "queued")
            self._write_page()
        return [self.states[job.name] for job in self.jobs]

    def _end(self) -> None:
        replace_file(self.jobs[0].folder / SESSION, b"")

    def _write_page(self) -> None:
        write_batch_page(self.jobs, self.states)

    def _watch(self, pending: dict[Any, BatchJob]) -> None:
        while pending:
            for future in [one for one in pending if one.done()]:
                job = pending.pop(future)
                self._show(job, self._ended(future, job))
            for job in pending.values():
                self._show(job, job.state())
                if job.measures and self.states[job.name].state == "running":
                    self._tell_what_it_says(job)
            if time.monotonic() > self._page_s + PAGE_S:
                self._write_page()
                self._page_s = time.monotonic()
            time.sleep(POLL_S if pending else 0)

    def _ended(self, future: Any, job: BatchJob) -> State:
        with suppress(CancelledError):
            if error := future.exception():
                return job.fail(str(error) if isinstance(error, WanbenchError) else repr(error))
            return future.result()
        kept = "Jobs that are done are kept; repeat the command to continue"
        raise WanbenchError(f"the connection to the scheduler is lost. {kept}.")

    def _show(self, job: BatchJob, state: State) -> None:
        before = self.states.get(job.name)
        self.states[job.name] = state
        if state.state in ("queued", before and before.state):
            return
        counts = Counter(one.state for one in self.states.values())
        counted = ", ".join(f"{counts[name]} {name}" for name in STATES if counts[name])
        tell(f"[{counted}] {job.name}: {state.state}{f': {state.reason}' if state.reason else ''}")

    def _tell_what_it_says(self, job: BatchJob) -> None:
        line, (told, told_s) = job.says(), self._said.get(job.name, ("", -SAYS_S))
        if line != told and time.monotonic() > told_s + SAYS_S:
            self._said[job.name] = line, time.monotonic()
            tell(f"  {job.name}: {line}")


def _begin(job: BatchJob, retry: bool) -> State:
    """Return the state of a job before it runs: "queued", unless its page exists or it failed too often."""
    before = job.state()
    if job.is_done():
        return replace(before if before.state == "done" else job.put("done", failures=0), state="kept")
    failures = before.failures if before.made_from == job.page.made_from and not retry else 0
    return before if failures >= FAILURES else job.put("queued", failures=failures)


@contextmanager
def _local(processes: int) -> Generator[Callable[..., Any]]:
    with ThreadPoolExecutor(processes) as analysing, ThreadPoolExecutor(1) as measuring:
        yield lambda run, job, *more: (measuring if job.measures else analysing).submit(run, job, *more)


@contextmanager
def _cluster(address: str) -> Generator[Callable[..., Any]]:
    if not re.fullmatch(r"((inproc|tcp|tls|ucx|wss?)://)?[\w.\-/\[\]]+(:[\w:.\]]*)?", address):
        raise refusal("--cluster", address, "an address such as tcp://10.0.0.1:8786, without user and password")
    try:
        from distributed import Client
    except ImportError:
        raise WanbenchError("--cluster needs the package distributed: install wanbench[cluster].") from None
    with Client(address, set_as_default=False) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        measuring = sum("measure" in one["resources"] for one in workers)
        tell(f"{count(len(workers), 'worker')} at {address}, {measuring} with the resource measure")

        def submit(run: Callable[..., State], job: BatchJob, *more: object):
            needs = {"measure": 1} if job.measures else None
            return client.submit(run, job, *more, key=f"{job.name}-{job.session}", pure=False, resources=needs)

        yield submit
