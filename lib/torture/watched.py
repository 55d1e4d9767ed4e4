"""A study that runs as a process of its own, and what can be said of it after a fault."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanbench import folders
from wanbench.measure.labs.ssh.programs import supervisor

from .study import ECHOES, links

MARK = "WANBENCH_TORTURE_MARK"
LONGEST_S = 300  # more means that it hangs: four studies at once, two of them with brokers, take half of it
GONE_S = 20  # for what a killed driver started to end
DISK = "size=2m"
ENTRY = "import sys; from wanbench.__main__ import main; sys.exit(main())"  # as the installed command has it
WANBENCH = (sys.executable, "-c", ENTRY)
NOTEBOOK = CAMPAIGN = "torture"


def is_helper(pid: int, words: list[str]) -> bool:
    """Return whether a process is the lab's helper itself, which has the pid 1 in its namespace."""
    return "wanbench.measure.links.lab_supervisor" in words and Path(words[0]).name.startswith("python")


def is_supervisor(pid: int, words: list[str]) -> bool:
    """Return whether a process is what a driver runs on a host by SSH."""
    return Path(words[0]).name.startswith("python") and any("'wanbench-supervisor'" in word for word in words)


@dataclass(frozen=True)
class Kind:
    """
    A kind of study: its name in `torture.study`, how long its lab measures (faults come at any time of that), for each
    table how many rows its tests have, in ascending order, whether a page measures it, in which rounds its faults are
    drawn (heavier studies less often), and which process shows that its lab opens.
    """

    study: str
    lasts_s: float
    rows: Mapping[str, Sequence[int]]
    page: bool = False
    every: int = 1
    opened: Callable[[int, list[str]], bool] = is_helper


PINGED = {"echoes": (ECHOES, ECHOES), "transfers": (1, 1)}
KINDS = {
    "survey": Kind("survey", 4.0, PINGED),
    "page": Kind("survey", 4.0, PINGED, page=True),
    "hosts by SSH": Kind("survey", 4.0, PINGED, every=3, opened=is_supervisor),
    "a broker": Kind("load", 25.0, {"producers": (1, 1)}, every=6),
    "three brokers": Kind("brokers", 45.0, {"faults": (0, 1), "open_loop_loads": (0, 1)}, page=True, every=6),
    "mirrored clusters": Kind("mirror", 60.0, {"faults": (0, 1), "open_loop_loads": (0, 1)}, every=6),
}


def is_any(pid: int, words: list[str]) -> bool:
    """Return True: every process of the study."""
    return True


class NotPossible(Exception):
    """The fault came too late to do harm, or cannot be inflicted here, and is not counted."""


@dataclass
class Started:
    """A process that a fault or the torturer started, and where its output goes."""

    process: subprocess.Popen
    log: Path

    def said(self) -> str:
        """Return its output."""
        return self.log.read_text(errors="replace")


def let_hear() -> None:
    """Let what is started hear SIGINT and SIGHUP, also if this process ignores them, as after `nohup` or with "&"."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # unlike SIG_IGN, a handler is not inherited


class Study:
    """A study in a folder of its own: its data, its temporary files, its processes, which all carry a mark."""

    def __init__(self, folder: Path, kind: str = "survey", own_disk: bool = False):
        self.mark, self.folder, self.kind = str(uuid.uuid4()), folder, KINDS[kind]
        self.data, self.temporary = folder / "data", folder / "tmp"
        self.command = [sys.executable, "-m", "torture.study", CAMPAIGN, self.kind.study]
        self.hosts: Any = None  # an open `SshdLab`, if it measures on such
        self.environment: dict[str, str] = {}
        self.expects_kept, self.resumes = True, True
        self.mend: Callable | None = None
        self.started: list[Started] = []
        self.beside: list[subprocess.Popen] = []  # what disturbs it, and is ended with it
        self.damaged: Path | None = None
        self.before: dict[str, str] = {}
        self.groups: set[Path] = set()
        for one in (self.data, self.temporary):
            one.mkdir(parents=True)
        if own_disk:
            mount(self.data)
        if self.kind.page:
            self.command = [*WANBENCH, "run", NOTEBOOK]
            write_notebook(folder / "checkout", self.kind.study)

    @property
    def driver(self) -> subprocess.Popen:
        """The process that was started first."""
        return self.started[0].process

    def start(self, command: Sequence[str] = (), **environment: str) -> Started:
        """Start the study's command, or another one."""
        about = {"WANBENCH_DATA": str(self.data), "TMPDIR": str(self.temporary), MARK: self.mark}
        about["WANBENCH_KAFKA"] = str(folders.kafka_jars())
        place = self.folder / "checkout"
        log = self.folder / f"log.{len(self.started)}"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command or self.command,
                env={**os.environ, **about, **self.environment, **environment},
                cwd=place if place.is_dir() else None,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.started.append(Started(process, log))
        return self.started[-1]

    @contextmanager
    def on_hosts(self) -> Iterator[None]:
        """
        Keep hosts with an sshd open, if the study measures on such. They carry no mark, so that they outlast the study;
        all that a login starts carries it.
        """
        if self.kind.opened is not is_supervisor:
            yield
            return
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        import sshd_in_namespaces

        if reason := sshd_in_namespaces.unavailable():
            raise NotPossible(reason)
        (folder := self.folder / "hosts").mkdir()
        environment = {MARK: self.mark, "TMPDIR": str(self.temporary)}
        with sshd_in_namespaces.SshdLab(folder, links(), environment=environment) as self.hosts:
            self.command.append(str(self.hosts.inventory))
            yield
            # As the next connection does, which removes what a killed supervisor has left on its host.
            told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": {**os.environ, **environment}}
            subprocess.run([sys.executable, supervisor.__file__], check=True, **told)

    def wait(self, chance: random.Random) -> None:
        """
        Start the study, wait until its lab opens, and then until a random moment, and note what is measured by then.
        Raise NotPossible if the study has ended.
        """
        self.start()
        while self.driver.poll() is None and not self.processes(self.kind.opened):
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(chance.uniform(0, self.kind.lasts_s))
            raise NotPossible("the study has ended")
        self.before = self.kept()

    def processes(self, wanted: Callable[[int, list[str]], bool]) -> list[int]:
        """Return the pids of this study whose command line is wanted."""
        found, mark = [], self.mark.encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark not in (process / "environ").read_bytes():
                    continue
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if not words[0]:
                    continue  # it has ended, or is of the kernel
                group = (process / "cgroup").read_text().strip().rpartition(":")[2]
                if "wanbench-" in group:
                    self.groups.add(Path("/sys/fs/cgroup") / group.lstrip("/"))
                pid = int(process.name)
                if wanted(pid, words) and all(pid != one.pid for one in self.beside):
                    found.append(pid)
        return found

    def inside(self, command: Sequence[str]) -> None:
        """Start a command in every region's network namespace; it ends with the study."""
        for helper in self.processes(is_helper)[:1]:
            with suppress(OSError):
                here = os.readlink(f"/proc/{helper}/ns/net")
                spaces = {os.readlink(one): one for one in Path(f"/proc/{helper}/fd").iterdir()}
                for space, path in spaces.items():
                    if space.startswith("net:[") and space != here:
                        self.beside.append(
                            subprocess.Popen(["nsenter", f"--net={path}", "--", *command], stderr=subprocess.DEVNULL)
                        )
                return
        raise NotPossible("the lab has closed")

    def end(self) -> list[str]:
        """Wait for what was started; return what hangs, and end it. End what disturbs it."""
        hung = []
        for one in self.started:
            try:
                one.process.wait(LONGEST_S)
            except subprocess.TimeoutExpired:
                hung.append("a driver hangs")
                one.process.kill()
                one.process.wait()
        for one in self.beside:
            one.kill()
            one.wait()
        self.beside = []
        return hung

    def left(self) -> list[str]:
        """
        Return what is left of ended drivers: processes, which hold namespaces, devices and ports, and control groups.
        """
        deadline = time.monotonic() + GONE_S
        while (pids := self.processes(is_any)) and time.monotonic() < deadline:
            time.sleep(0.1)
        named = []
        for pid in pids:
            with suppress(OSError):
                named.append(f"process {pid}: " + Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:200])
                os.kill(pid, 9)
        while (groups := [path for path in self.groups if path.is_dir()]) and time.monotonic() < deadline:
            time.sleep(0.1)
        return named + [f"control group {path}" for path in groups]

    def files_left(self) -> list[str]:
        """
        Return temporary files, except the lock that says that this machine measures; mounts; namespaces with a name;
        and devices outside of namespaces.
        """
        pids = [one.process.pid for one in self.started]
        kernels = [path for pid in pids for path in Path("/tmp").glob(f"wanbench-*-{pid}-*")]
        found = (one for one in self.temporary.iterdir() if one.name != "wanbench-measuring")
        hidden = [path for path in self.data.rglob(".*") if path.suffix in (".tmp", ".unfinished")]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        spaces = [line for line in mounts if " nsfs " in line and "wanbench" in line]
        devices = list(Path("/sys/class/net").glob("wan*"))
        return (
            [f"temporary file {one}" for one in (*found, *kernels, *hidden)]
            + [f"namespace {line}" for line in spaces]
            + [f"device {path.name}" for path in devices]
        )

    def folders(self) -> list[Path]:
        """Return the run folders."""
        return sorted(path.parent for path in self.data.glob("raw/*/*/journal.jsonl"))

    def lists(self, path: Path) -> bool:
        """Return whether the journal of a raw file's run lists it."""
        run = path.parents[1]
        return f'"{path.relative_to(run)}"' in (run / "journal.jsonl").read_text(errors="replace")

    def kept(self) -> dict[str, str]:
        """
        Return the hash of each file that a journal lists as measured by a finished test, and of the journals' lines;
        the files are read without the library. A file that differs from the journal has the hash "damaged".
        """
        found = {}
        for folder in self.folders():
            with suppress(OSError):
                text = (folder / "journal.jsonl").read_bytes()
                for number, line in enumerate(text[: text.rfind(b"\n") + 1].splitlines(), 1):
                    found[f"{folder.relative_to(self.data)}: journal, line {number}"] = hashlib.sha256(line).hexdigest()
                    event = json.loads(line)
                    for file in event.get("files", ()) if event["event"] == "test-finished" else ():
                        path = folder / file["path"]
                        actual = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"
                        found[str(path.relative_to(self.data))] = actual if actual == file["sha256"] else "damaged"
        return found


def write_notebook(top: Path, study: str) -> None:
    """Write a checkout with one notebook, which measures a study."""
    import nbformat.v4 as v4

    cells = [
        v4.new_markdown_cell("# Does it stand a fault?"),
        v4.new_code_cell(
            f'campaign = "{CAMPAIGN}"  # start of the name in data/raw', metadata={"tags": ["parameters"]}
        ),
        v4.new_code_cell(f'import torture.study\n\nrun = torture.study.measured(campaign, "{study}")\nrun'),
    ]
    (top / "notebooks").mkdir(parents=True)
    (top / "papermill-params").mkdir()
    (top / "data").mkdir()
    (top / "data" / "published").symlink_to(folders.root() / "data" / "published")  # which pages cite
    text = json.dumps(v4.new_notebook(cells=cells))
    (top / "notebooks" / f"{NOTEBOOK}.ipynb").write_text(text)


def mount(folder: Path) -> None:
    """Mount a small disk in memory at a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "none", str(folder)], check=True)


def unmount(folder: Path) -> None:
    """Take the disk away."""
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def scratch() -> tempfile.TemporaryDirectory:
    """Return a folder with a short path: the path of a Unix socket has at most 107 bytes."""
    return tempfile.TemporaryDirectory(prefix="wt-", dir="/tmp", ignore_cleanup_errors=True)
