"""
Run commands on a host as long as the connection lasts. `wanbench.measure.labs.ssh.connection` sends this file through
SSH and starts it; it needs only Python (3.8 or newer, on Linux).

Requests arrive on stdin and replies go to stdout. Each is a line of JSON with the field "size", followed by that many
bytes of payload. When stdin ends, or when no request arrives for `patience_s` (a field of the first request), the
program ends all its descendant processes and removes the scratch folder. So nothing stays behind when the other end,
sshd or the network fails.
"""

from __future__ import annotations

import ctypes
import fcntl
import glob
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime, timezone

CHUNK = 1 << 20
GRACE_S = 2.0  # time between SIGTERM and SIGKILL
END_TIMEOUT_S = 20.0
CHECK_S = 1.0
PREFIX = "wanbench-ssh-"
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl.h

libc = ctypes.CDLL(None, use_errno=True)


def now() -> str:
    """Return the time by this host's clock: UTC, in ISO 8601 with microseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")  # noqa: UP017 (older Pythons)


class Gone(Exception):
    """The other end has closed the connection."""


class Command:
    """A command that runs in a new session; its output goes to unnamed files."""

    def __init__(self, words: list[str], folder: str, environment: dict[str, str]):
        self.stdout = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self.stderr = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self.process, self.status, self.started_at_utc, self.ended_at_utc = None, None, now(), None
        try:
            files = {"stdin": subprocess.DEVNULL, "stdout": self.stdout, "stderr": self.stderr}
            own = {"start_new_session": True, "preexec_fn": die_with_parent}
            self.process = subprocess.Popen(words, cwd=folder, env=environment, **files, **own)
        except OSError as error:  # report it as a shell does
            self.stderr.write(f"{words[0]}: {error.strerror or error}\n".encode(errors="replace"))
            self.stderr.flush()
            self.end(127 if isinstance(error, FileNotFoundError) else 126)

    def sizes(self) -> list[int]:
        return [os.fstat(file.fileno()).st_size for file in (self.stdout, self.stderr)]

    def end(self, status: int) -> None:
        self.status, self.ended_at_utc = status, now()

    def signal(self, number: int) -> None:
        if self.status is None and self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


def die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Supervisor:
    """Run the commands of one connection, and end them with it."""

    def __init__(self):
        self.commands, self.buffer, self.patience_s, self.output_bytes = {}, b"", 0.0, sys.maxsize
        new = tempfile.mkdtemp(prefix="." + PREFIX)  # of mode 0700
        self.lock = lock(new)  # before it has a name with PREFIX: other supervisors remove such folders without a lock
        self.folder = os.path.join(os.path.dirname(new), os.path.basename(new)[1:])
        os.rename(new, self.folder)
        path = os.environ.get("PATH", os.defpath)
        self.environment = dict(os.environ, PATH=path + ":" + SYSTEM_FOLDERS, LC_ALL="C.UTF-8", TMPDIR=self.folder)
        wake, self.woken = os.pipe()
        self.wake = wake
        for end in (wake, self.woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, leave)

    def serve(self) -> None:
        """Answer requests until the other end closes the connection, which raises Gone."""
        while True:
            ready, _, _ = select.select([0, self.wake], [], [], CHECK_S)
            for one in self.commands.values():
                if max(one.sizes()) > self.output_bytes:
                    one.signal(signal.SIGKILL)
            if self.wake in ready:
                os.read(self.wake, 4096)
                self.reap()
            if 0 in ready:
                more = os.read(0, CHUNK)
                if not more:
                    raise Gone
                self.buffer += more
                signal.setitimer(signal.ITIMER_REAL, self.patience_s)
                while self.answer_one():
                    pass

    def answer_one(self) -> bool:
        """Answer the first complete request in the buffer; return False if there is none."""
        end = self.buffer.find(b"\n")
        if end < 0:
            return False
        request = json.loads(self.buffer[:end])
        size = request.pop("size", 0)
        if len(self.buffer) < end + 1 + size:
            return False
        payload, self.buffer = self.buffer[end + 1 : end + 1 + size], self.buffer[end + 1 + size :]
        number, verb = request.pop("id"), request.pop("verb")
        try:
            reply, back = getattr(self, "do_" + verb)(payload, **request)
        except OSError as error:
            reply, back = {"error": error.strerror or str(error)}, b""
        self.send(dict(reply, id=number), back)
        self.reap()  # a command that could not start has ended already
        return True

    def send(self, reply: dict[str, object], payload: bytes = b"") -> None:
        data = json.dumps(dict(reply, size=len(payload))).encode() + b"\n" + payload
        try:
            while data:
                data = data[os.write(1, data) :]
        except (BrokenPipeError, ConnectionResetError):
            raise Gone from None

    def reap(self) -> None:
        """Reap processes that have ended, including orphaned ones, and report the commands among them."""
        by_pid = {one.process.pid: one for one in self.commands.values() if one.status is None}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            if pid in by_pid:
                by_pid[pid].process.returncode = 0  # reaped already, so that Popen does not wait for it
                by_pid[pid].end(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        for name, one in list(self.commands.items()):
            if one.status is not None and one.ended_at_utc:
                self.report(name, one)

    def report(self, name: str, one: Command) -> None:
        """Report that a command has ended; if its output is short, send the output too and forget the command."""
        sizes, disk = one.sizes(), os.fstatvfs(one.stdout.fileno())
        free = (disk.f_bavail if os.geteuid() else disk.f_bfree) * disk.f_frsize
        reply = {"ended": name, "status": one.status, "ended_at_utc": one.ended_at_utc, "sizes": sizes}
        reply["disk_is_full"] = disk.f_blocks > 0 and free < 1 << 16
        one.ended_at_utc = None
        whole, output = sum(sizes) <= CHUNK, b""
        if whole:
            output = os.pread(one.stdout.fileno(), sizes[0], 0) + os.pread(one.stderr.fileno(), sizes[1], 0)
        self.send(dict(reply, whole=whole), output)
        if whole:
            self.do_forget(b"", name)

    def do_hello(self, payload: bytes, patience_s: float, output_bytes: int) -> tuple[dict[str, object], bytes]:
        self.patience_s, self.output_bytes = patience_s, output_bytes
        signal.setitimer(signal.ITIMER_REAL, patience_s)
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot_id = file.read().strip()
        about = {"scratch": self.folder, "boot_id": boot_id, "pid": os.getpid(), "python": sys.executable}
        return dict(about, version=list(sys.version_info[:3])), b""

    def do_clock(self, payload: bytes) -> tuple[dict[str, object], bytes]:
        return {"ns": time.time_ns()}, b""

    def do_start(self, payload: bytes, name: str, command: list[str]) -> tuple[dict[str, object], bytes]:
        one = self.commands[name] = Command(command, self.folder, self.environment)
        return {"started_at_utc": one.started_at_utc}, b""

    def do_signal(self, payload: bytes, name: str, number: int) -> tuple[dict[str, object], bytes]:
        if name in self.commands:
            self.commands[name].signal(number)
        return {}, b""

    def do_read(self, payload: bytes, name: str, stream: str, start: int) -> tuple[dict[str, object], bytes]:
        if name not in self.commands:
            return {"forgotten": True}, b""
        return {}, os.pread(getattr(self.commands[name], stream).fileno(), CHUNK, start)

    def do_forget(self, payload: bytes, name: str) -> tuple[dict[str, object], bytes]:
        one = self.commands.pop(name, None)
        if one is not None:
            one.stdout.close()
            one.stderr.close()
        return {}, b""

    def do_put(self, payload: bytes, path: str, start: int) -> tuple[dict[str, object], bytes]:
        with open(path, "r+b" if start else "wb") as file:
            file.seek(start)
            file.write(payload)
        return {}, b""

    def do_get(self, payload: bytes, path: str, start: int) -> tuple[dict[str, object], bytes]:
        with open(path, "rb") as file:
            file.seek(start)
            return {}, file.read(CHUNK)

    def end(self) -> None:
        """End all descendants, with SIGTERM first, and remove the scratch folder."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGTERM, signal.SIGCONT):
            signal_all(descendants(), number)
        start = time.monotonic()
        while (left := descendants()) and time.monotonic() - start < END_TIMEOUT_S:
            if time.monotonic() - start > GRACE_S:
                signal_all(left, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)


def leave(number: int, frame: object) -> None:
    raise Gone


def signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def descendants() -> set[int]:
    """Return all processes that descend from this one. Orphaned processes become its children; see `main`."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as file:
                parents[int(path.split("/")[2])] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    descending, new = set(), {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new and pid not in descending}
        descending |= new
    return descending


def lock(folder: str) -> int | None:
    """Lock a folder until this process ends, and return its file descriptor; None if another process has locked it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_abandoned() -> None:
    """Remove scratch folders of killed supervisors, and kill processes that still run in them."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), PREFIX + "*")):
        try:
            held = lock(folder) if os.lstat(folder).st_uid == os.geteuid() else None
        except OSError:
            continue
        if held is not None:
            for path in glob.glob("/proc/[0-9]*/cwd"):
                with suppress(OSError):
                    if (os.readlink(path) + "/").startswith(folder + "/"):
                        os.kill(int(path.split("/")[2]), signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def main() -> None:
    """Answer requests until the connection ends; then end all commands."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    remove_abandoned()
    os.umask(0o077)
    supervisor = Supervisor()
    try:
        supervisor.send({"wanbench": 1})
        supervisor.serve()
    except Gone:
        pass
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
