"""
Collect the output of a lab's background commands, and wait for or force their end.

`EnteredProcess` runs commands on this machine; `measure/labs/ssh` runs them on other hosts.
"""

import dataclasses
import errno
import math
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from wanbench.errors import LATER, CommandError, LabError, ParameterError

from .base import Completed, Process

GRACE_S = 2.0  # Time between SIGTERM and SIGKILL when a command is stopped.
# A command that prints more than this on stdout or stderr is killed; the largest raw file of all pages has 5 MB.
OUTPUT_BYTES = 256 * 2**20
_CHECK_S = 0.25  # Interval at which the size of a command's output is checked.
_EX_IOERR = 74  # The status of a command whose output could not be written (sysexits.h).


class PolledProcess(Process):
    """
    A command whose output is polled.

    Subclasses define `ask_to_end()` and `kill()`; `_has_ended(timeout_s)`, which waits at most this long for the end;
    `_complete()`, which returns the `Completed` after the end; `_read_at(position)`, which returns a chunk of stdout
    from this byte on; and `_so_far()`, which returns a `Completed` with the output so far.
    """

    longest_pause_s = 0.02
    ask_to_end = kill = _has_ended = _complete = _read_at = _so_far = LATER

    def __init__(self, command: Sequence[str]):
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise ParameterError(f"command is {command!r}; allowed: a list of arguments, the program first.")
        self.command = tuple(command)
        self._lock, self._completed = threading.Lock(), LATER

    def printed(self, start: int = 0) -> bytes:
        return read_all(self._read_at, start)

    def wait_for_output(self, text: str, timeout_s: float) -> None:
        wanted, seen, position = text.encode(), b"", 0
        deadline, pause_s = time.monotonic() + timeout_s, 0.001
        while True:
            is_running = self.is_running()
            while more := self._read_at(position):
                position += len(more)
                seen = seen[-len(wanted) :] + more
                if wanted in seen:
                    return
            if not is_running:
                completed = self.wait(0)
                raise command_error(completed, f"ended with status {completed.returncode} before it printed {text!r}")
            if time.monotonic() > deadline:
                raise command_error(self._so_far(), f"did not print {text!r} within {timeout_s:g} s")
            time.sleep(pause_s)
            pause_s = min(self.longest_pause_s, pause_s * 1.5)

    def is_running(self) -> bool:
        return not self._has_ended(0)

    def wait(self, timeout_s: float) -> Completed:
        if not self._has_ended(timeout_s):
            raise command_error(self._so_far(), f"did not end within {timeout_s:g} s")
        return self._complete()

    def end_by(self, deadline: float) -> Completed:
        """Wait until `deadline` (by the monotonic clock) for the command to end, then kill it; return its result."""
        return self._complete() if self._has_ended(max(0.0, deadline - time.monotonic())) else self.kill()

    def stop(self) -> Completed:
        self.ask_to_end()
        return self.end_by(time.monotonic() + GRACE_S)


class EnteredProcess(PolledProcess):
    """
    A command that another program, such as nsenter, runs as its only child.

    `entering` is that program with its arguments; it must make the command a session leader. `environment` is by
    default this process's. Raise LabError if that program cannot be started. The command prints to unnamed files, so it
    never waits for a reader and leaves no file behind.
    """

    def __init__(self, command: Sequence[str], entering: Sequence[str], environment: dict[str, str] | None = None):
        super().__init__(command)
        self._stdout, self._stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self._started_at_utc = _now()
        try:
            files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._stdout, "stderr": self._stderr}
            self._front = subprocess.Popen([*entering, *self.command], **files, env=environment, start_new_session=True)
        except OSError as error:
            raise LabError(f"{entering[0]} cannot be started: {error}") from None

    def ask_to_end(self) -> None:
        """Send SIGTERM to the command and its process group if it still runs, and SIGCONT in case it is stopped."""
        deadline = time.monotonic() + GRACE_S
        # The program in front may not have started the command yet.
        while not self._has_ended(0) and not self._signal(signal.SIGTERM) and time.monotonic() < deadline:
            time.sleep(0.001)
        self._signal(signal.SIGCONT)

    def kill(self) -> Completed:
        """Kill the command and its process group, and return its result."""
        if not self._has_ended(0):
            self._end_now()
        return self._complete()

    def _end_now(self):
        # The program in front, once stopped, cannot end with a status of its own when its child is gone.
        self._front.send_signal(signal.SIGSTOP)
        self._signal(signal.SIGKILL)
        self._front.kill()
        self._front.wait()

    def _signal(self, number: int) -> bool:
        """Signal the command's process group; return False if the program that runs the command has no child (yet)."""
        front = self._front.pid
        try:
            children = Path(f"/proc/{front}/task/{front}/children").read_text().split()
        except OSError:
            return False
        for child in map(int, children):
            for send in (os.killpg, os.kill):
                with suppress(ProcessLookupError):
                    send(child, number)
                    break
        return bool(children)

    def _has_ended(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self._front.poll() is None:
            if self._prints_too_much():
                self._end_now()
                return True
            if (left_s := deadline - time.monotonic()) <= 0:
                return False
            self._await_end(min(left_s, _CHECK_S))
        return True

    def _await_end(self, timeout_s: float) -> None:
        try:
            watched = os.pidfd_open(self._front.pid)
        except ProcessLookupError:
            self._front.wait()
            return
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.poll(timeout_s * 1000)
        finally:
            os.close(watched)

    def _prints_too_much(self):
        with self._lock:
            return self._completed is None and max(self._sizes()) > OUTPUT_BYTES

    def _sizes(self):
        return [os.fstat(file.fileno()).st_size for file in (self._stdout, self._stderr)]

    def _read_at(self, position: int) -> bytes:
        with self._lock:
            if self._completed is not None:
                return self._completed.stdout[position:]
            return os.pread(self._stdout.fileno(), 1 << 16, position)

    def _complete(self):
        with self._lock:
            if self._completed is None:
                self._completed = failed_if_incomplete(self._contents(), self._sizes(), _is_full(self._stdout))
                self._stdout.close()
                self._stderr.close()
            return self._completed

    def _so_far(self):
        with self._lock:
            return self._completed or self._contents()

    def _contents(self):
        returncode = -signal.SIGKILL if self._front.returncode is None else self._front.returncode
        outputs = _content(self._stdout), _content(self._stderr)
        return Completed(self.command, returncode, *outputs, self._started_at_utc, _now())


def read_all(read: Callable[[int], bytes], start: int = 0, most: float = math.inf) -> bytes:
    """Join the chunks that `read(position)` returns, from `start` until a chunk is empty or `most` bytes are read."""
    parts = []
    while start < most and (more := read(start)):
        parts.append(more)
        start += len(more)
    return b"".join(parts)


def result_of(process: PolledProcess, timeout_s: float, ok: Sequence[int] | None) -> Completed:
    """Wait for a command to end and return its result; kill it on timeout. See `Host.run`."""
    try:
        completed = process.wait(timeout_s)
    except BaseException:
        process.kill()
        raise
    if ok is not None and completed.returncode not in ok:
        raise command_error(completed, f"ended with status {completed.returncode}")
    return completed


def command_error(completed: Completed, what: str) -> CommandError:
    """Return a CommandError whose message is the command, `what` (went wrong) and the command's last output."""
    output = (completed.stderr.strip() or completed.stdout.strip()).decode(errors="replace")[-500:]
    error = CommandError(f"{' '.join(completed.command)} {what}" + (f"; its last output: {output}" if output else "."))
    error.completed = completed
    return error


def failed_if_incomplete(completed: Completed, sizes: Sequence[int], disk_is_full: bool) -> Completed:
    """
    Return a command's result, turned into a failure with a reason in stderr if its output may be incomplete.

    Output is incomplete if one of `sizes` (bytes of stdout and of stderr) exceeds `OUTPUT_BYTES`, or the disk is full.
    """
    if max(sizes) > OUTPUT_BYTES:
        fault = f"killed because it printed more than {OUTPUT_BYTES >> 20} MiB"
    elif disk_is_full:
        fault = f"{os.strerror(errno.ENOSPC)} where its output is written; some of it may be missing"
    else:
        return completed
    status = completed.returncode if completed.returncode < 0 else _EX_IOERR
    stderr = completed.stderr + f"\nwanbench: {fault}\n".encode()
    return dataclasses.replace(completed, returncode=status, stderr=stderr)


def _is_full(file: IO[bytes]) -> bool:
    """Return whether the disk that holds a file has less than 64 KiB left for this user."""
    disk = os.fstatvfs(file.fileno())
    free = disk.f_bavail if os.geteuid() else disk.f_bfree
    return disk.f_blocks > 0 and free * disk.f_frsize < 2**16


def _content(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), min(os.fstat(file.fileno()).st_size, OUTPUT_BYTES), 0)


def _now():
    return datetime.now(UTC).isoformat(timespec="microseconds")
