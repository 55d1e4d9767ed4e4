"""A study that runs as a process of its own, and what can be said of it after a fault."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wanbench.errors import RawDataError
from wanbench.runs import Run

MARK = "WANBENCH_TORTURE_MARK"
LASTS_S = 4.0  # an open lab measures about this long, so faults come at any time of it
LONGEST_S = 120  # more means that it hangs
GONE_S = 20  # for what a killed driver started to end
DISK = "size=2m"


def is_helper(words: list[str]) -> bool:
    """Return whether a command line is that of the lab's helper."""
    return any("lab_supervisor" in word for word in words)


class NotPossible(Exception):
    """The fault came too late to do harm, and is not counted."""


class Study:
    """A study in a folder of its own: its data, its temporary files, its processes, which all carry a mark."""

    def __init__(self, folder: Path, own_disk: bool):
        self.mark, self.campaign = str(uuid.uuid4()), "torture"
        self.data, self.temporary, self.log = folder / "data", folder / "tmp", folder / "log"
        self.own_disk, self.expects_kept = own_disk, True
        self.mend: Callable | None = None
        self.beside: subprocess.Popen | None = None
        self.damaged: Path | None = None
        for one in (self.data, self.temporary):
            one.mkdir(parents=True)
        if own_disk:
            mount(self.data)
        self.driver = self.start(self.campaign)

    def start(self, campaign: str) -> subprocess.Popen:
        """Start a driver."""
        about = {"WANBENCH_DATA": str(self.data), "TMPDIR": str(self.temporary), MARK: self.mark}
        command = [sys.executable, "-m", "torture.study", campaign]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, env={**os.environ, **about}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait(self, chance: random.Random) -> None:
        """Wait until the lab opens, and then until a random moment; raise NotPossible if the study has ended."""
        while self.driver.poll() is None and not self.processes(is_helper):
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(chance.uniform(0, LASTS_S))
            raise NotPossible("the study has ended")

    def processes(self, wanted: Callable) -> list[int]:
        """Return the pids of this study whose command line is wanted."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if self.mark.encode() in (process / "environ").read_bytes() and words[0] and wanted(words):
                    found.append(int(process.name))
        return found

    def stop(self, number: int) -> None:
        """Send a signal to the driver, and wait for its end."""
        self.driver.send_signal(number)
        self.driver.wait(LONGEST_S)

    def end(self) -> list[str]:
        """Wait for the drivers; return what hangs, and end it."""
        hung = []
        for driver in filter(None, (self.driver, self.beside)):
            try:
                driver.wait(LONGEST_S)
            except subprocess.TimeoutExpired:
                hung.append("a driver hangs")
                driver.kill()
                driver.wait()
        return hung

    def left(self) -> list[str]:
        """Return what is left: processes at once; files too, unless a killed driver's next start removes them."""
        deadline = time.monotonic() + GONE_S
        while (pids := self.processes(lambda words: True)) and time.monotonic() < deadline:
            time.sleep(0.1)
        named = [f"process {pid}" for pid in pids]
        for pid in pids:
            with suppress(OSError):
                named[pids.index(pid)] += ": " + Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:120]
                os.kill(pid, 9)
        return named

    def files_left(self) -> list[str]:
        """Return temporary files, except the lock that says that this machine measures, and cgroups of this run."""
        return [f"temporary file {one.name}" for one in self.temporary.iterdir() if one.name != "wanbench-measuring"]

    def folders(self) -> list[Path]:
        """Return the run folders."""
        return sorted(path.parent for path in self.data.glob("raw/*/*/journal.jsonl"))

    def done(self) -> dict[tuple, list]:
        """Return the raw files of all tests that are done, each with its hash."""
        return {
            (folder.parent.name, folder.name, attempt.test_id): sorted(
                (one["path"], one["sha256"]) for one in attempt.files
            )
            for folder in self.folders()
            for attempt in Run.open(folder).attempts()
            if attempt.outcome == "done"
        }


def verify(folder: Path) -> str:
    """Return what is wrong with a run, or an empty text."""
    try:
        Run.open(folder).verify()
    except RawDataError as error:
        return str(error)
    return ""


def mount(folder: Path) -> None:
    """Mount a small disk in memory at a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "none", str(folder)], check=True)


def unmount(folder: Path) -> None:
    """Take the disk away."""
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def scratch() -> tempfile.TemporaryDirectory:
    """Return a folder with a short path: the path of a Unix socket has at most 107 bytes."""
    return tempfile.TemporaryDirectory(prefix="wt-", dir="/tmp", ignore_cleanup_errors=True)
