"""Write a run folder: find or create it, lock it, finish it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wanbench import __version__
from wanbench.errors import LATER, ParameterError, RawDataError, WanbenchError

from . import journal
from .raw import RawFile, sha256, write_raw
from .read import MANIFEST, SCHEMA_VERSION, Run

_CAMPAIGN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunHeldError(WanbenchError, RuntimeError):
    """Another process, or another thread or call of this process, is writing the run."""


def claim(
    data_folder: str | Path,
    *,
    campaign: str,
    parameters: dict[str, Any],
    plan: dict[str, Any],
    lab_settings: dict[str, Any],
    fresh: bool = False,
    retry_failed: bool = False,
) -> Run | RunWriter:
    """
    Find the run to measure into: the campaign's newest run with the same parameters, plan and lab settings, or a new
    one under <data_folder>/raw/<campaign>/<run id>.

    Parameters, plan and lab settings hold JSON types; of two plans, only tests, experiments and seed are compared. With
    `fresh`, the run is always new. With `retry_failed`, a finished run with failed tests is reopened. Returns the `Run`
    if it is finished, otherwise a `RunWriter` that has locked it.

    Raises
    ------
    RunHeldError
        If the run is being measured now.
    RawDataError
        If the run is damaged.
    """
    if not isinstance(campaign, str) or not _CAMPAIGN.fullmatch(campaign):
        raise ParameterError(f"Campaign {campaign!r} must be 1 to 64 letters, digits, '.', '_' or '-'.")
    compared = {key: plan[key] for key in ("tests", "experiments", "seed")}
    identity = {"parameters": parameters, "plan": compared, "lab": lab_settings}
    compared["tests"] = [
        [test[key] for key in ("id", "round", "from_region", "to_region")]
        + [test[key] for key in ("setting", "block", "experiments") if key in test]
        for test in plan["tests"]
    ]
    try:
        text = json.dumps(identity, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"parameters must be strings, numbers, lists and dicts, as in JSON: {error}.") from None
    full_hash = hashlib.sha256(text.encode()).hexdigest()
    parent = Path(data_folder) / "raw" / campaign
    parent.mkdir(parents=True, exist_ok=True)
    start = {
        "event": "run-started",
        "schema_version": SCHEMA_VERSION,
        "campaign": campaign,
        "identity_sha256": full_hash,
        "parameters": parameters,
        "plan": plan,
    }
    with _locked(parent):
        try:
            if fresh or (folder := _newest(parent, full_hash)) is None:
                return RunWriter(_new_folder(parent, full_hash), start)
            if not (folder / MANIFEST).exists():
                return RunWriter(folder, start)
            run = Run.open(folder)
            if not (retry_failed and run.failures()):
                return run
            writer = RunWriter(folder, start)
            (folder / MANIFEST).unlink()
            return writer
        except RawDataError as error:
            error.args = (f"{error} Restore the run from a copy, or start a new run with --fresh.",)
            raise


class RunWriter:
    """
    A run folder that this process has locked for writing. As a context manager it releases the lock on exit.

    `before` is the `Run` as earlier sessions left it; None in the first session.
    """

    def __init__(self, folder: Path, start: dict[str, Any]):
        self.folder = folder
        self._start = {**start, "run_id": folder.name}
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._journal: journal.Journal = LATER
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.before = self._read_before()
        except BlockingIOError:
            os.close(self._lock)
            raise RunHeldError(f"Another process is measuring into {folder}; wait for it, or stop it.") from None
        except BaseException:
            os.close(self._lock)
            raise

    def _read_before(self) -> Run | None:
        path = self.folder / journal.NAME
        if not path.exists():
            return None
        run = Run.open(self.folder)
        run.verify()
        return run if run.events() else None

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, lab: dict[str, Any]) -> None:
        """Record in the journal that measuring starts or resumes, with `lab`, the lab's description."""
        self._open_journal()
        if self.before is None:
            self.record({**self._start, "origin": origin(), "lab": lab})
        else:
            self.record({"event": "resumed", "origin": origin(), "lab": lab, "torn": self._torn})

    def _open_journal(self) -> None:
        """Open the journal after removing a truncated last line, so that the next event starts a new line."""
        if self._journal is not None:
            return
        path = self.folder / journal.NAME
        self._torn = ""
        if path.exists():
            lines = journal.read(path)
            self._torn = lines.torn.decode("utf-8", "backslashreplace")
            os.truncate(path, lines.whole_bytes)
        for left_over in self.folder.glob("*/.*.unfinished"):
            left_over.unlink()
        self._journal = journal.Journal(path)
        os.fsync(self._lock)

    @property
    def started(self) -> bool:
        """Return whether `start` was called in this session."""
        return self._journal is not None

    def record(self, *events: dict[str, Any]) -> None:
        self._journal.append(*events)

    def keep(self, experiment: str, name: str, data: bytes, *, started_at_utc: str, ended_at_utc: str) -> RawFile:
        return write_raw(self.folder, experiment, name, data, started_at_utc=started_at_utc, ended_at_utc=ended_at_utc)

    def finish(self) -> Run:
        """Record "run-finished" in the journal, and write the manifest, which lists every file with its SHA-256."""
        self._open_journal()
        run = Run.open(self.folder)
        if run.events()[-1]["event"] != "run-finished":
            self.record({"event": "run-finished"})
            run = Run.open(self.folder)
        files = {
            path.relative_to(self.folder).as_posix(): sha256(path)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name not in (MANIFEST, f".{MANIFEST}.unfinished")
        }
        for file in run.raw_files():
            if files.get(file["path"]) != file["sha256"]:
                found = files.get(file["path"], "no file")
                raise RawDataError(self.folder / file["path"], None, found, f"SHA-256 {file['sha256']}")
        manifest = {**run.facts(), "files": files}
        unfinished = self.folder / f".{MANIFEST}.unfinished"
        with unfinished.open("w") as file:
            json.dump(manifest, file, indent=1, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self.folder / MANIFEST)
        os.fsync(self._lock)
        return Run.open(self.folder)

    def close(self) -> None:
        """Unlock the run folder, and remove it if it is empty. Further calls do nothing."""
        if self._journal is not None:
            self._journal.close()
            self._journal = LATER
        if self._lock >= 0:
            with suppress(FileNotFoundError), _locked(self.folder.parent):  # somebody may have removed it
                if not any(self.folder.iterdir()):
                    self.folder.rmdir()
            os.close(self._lock)
            self._lock = -1


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _newest(parent: Path, full_hash: str) -> Path | None:
    # Not by glob, which keeps the compiled pattern of each run.
    for folder in sorted((path for path in parent.iterdir() if f"-{full_hash[:8]}" in path.name), reverse=True):
        if not folder.is_dir():
            continue
        path = folder / journal.NAME
        events = journal.read(path).events if path.exists() else ()
        if not events or events[0].get("identity_sha256") == full_hash:
            return folder
    return None


def _new_folder(parent: Path, full_hash: str) -> Path:
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{full_hash[:8]}"
    number = 0
    while True:
        number += 1
        folder = parent / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder


def origin() -> dict[str, Any]:
    """
    Return wanbench's version, the checkout's git commit, and whether the checkout is dirty; the last two are None
    outside git.
    """
    here = Path(__file__).resolve()
    commit = dirty = None
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is not None:
        commit = _git(here.parent, "rev-parse", "HEAD")
        status = _git(here.parent, "status", "--porcelain", "--untracked-files=no")
        dirty = None if status is None else bool(status)
    return {"wanbench_version": __version__, "git_commit": commit, "git_dirty": dirty}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
