"""Commands of a lab that run as processes of this machine."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from wanbench.errors import CommandError, LabError, ParameterError
from wanbench.labs.base import Completed, Process

GRACE_S = 2.0
"""Time that a command has to end after it was asked to."""


class EnteredProcess(Process):
    """
    A command that another program, such as unshare, runs for us as its only child.

    What it prints goes to files that have no name, so it never waits for a reader and leaves nothing behind.

    Parameters
    ----------
    command : sequence of str
        The command itself, as it is shown and recorded.
    entering : sequence of str
        The arguments that stand before it. They must make the command a session leader.

    Raises
    ------
    ParameterError
        Unless the command is a sequence of at least one word.
    LabError
        If the program in front cannot be started.
    """

    def __init__(self, command: Sequence[str], entering: Sequence[str]):
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise ParameterError(f"command is {command!r}; allowed: a list of arguments, the program first.")
        self.command = tuple(command)
        self._lock, self._completed = threading.Lock(), None
        self._stdout, self._stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self._started_at_utc = _now()
        try:
            self._front = subprocess.Popen(
                [*entering, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(f"{entering[0]} cannot be started: {error}") from None

    def is_running(self) -> bool:
        return not self._has_ended(0)

    def printed(self, start: int = 0) -> bytes:
        parts = []
        while more := self._read_at(start):
            start += len(more)
            parts.append(more)
        return b"".join(parts)

    def wait_for_output(self, text: str, timeout_s: float) -> None:
        wanted, seen, position = text.encode(), b"", 0
        deadline, pause_s = time.monotonic() + timeout_s, 0.001
        while True:
            ended = self._has_ended(0)
            while more := self._read_at(position):
                position += len(more)
                seen = seen[-len(wanted) :] + more
                if wanted in seen:
                    return
            if ended:
                raise self._error(f"ended with status {self._front.returncode} before it printed {text!r}")
            if time.monotonic() > deadline:
                raise self._error(f"did not print {text!r} within {timeout_s:g} s")
            time.sleep(pause_s)
            pause_s = min(0.02, pause_s * 1.5)

    def wait(self, timeout_s: float) -> Completed:
        if not self._has_ended(timeout_s):
            raise self._error(f"did not end within {timeout_s:g} s")
        return self._complete()

    def stop(self) -> Completed:
        self.ask_to_end()
        return self.end_by(time.monotonic() + GRACE_S)

    def ask_to_end(self) -> None:
        """Send SIGTERM to the command and what it started, if it still runs; wake it if it is frozen."""
        deadline = time.monotonic() + GRACE_S
        # A command so young that the program in front has not started it yet cannot be asked.
        while not self._has_ended(0) and not self._signal(signal.SIGTERM) and time.monotonic() < deadline:
            time.sleep(0.001)
        self._signal(signal.SIGCONT)

    def end_by(self, deadline: float) -> Completed:
        """Wait for the end until a time of the monotonic clock, then kill."""
        if not self._has_ended(max(0.0, deadline - time.monotonic())):
            return self.kill()
        return self._complete()

    def kill(self) -> Completed:
        """End the command and everything in its session's group, now."""
        if not self._has_ended(0):
            self._signal(signal.SIGKILL)
            self._front.kill()
            self._front.wait()
        return self._complete()

    def _signal(self, number):
        """Signal the command's group; False if the program in front has no child (yet)."""
        front = self._front.pid
        try:
            children = Path(f"/proc/{front}/task/{front}/children").read_text().split()
        except OSError:
            return False
        for child in map(int, children):
            for send in (os.killpg, os.kill):
                try:
                    send(child, number)
                    break
                except ProcessLookupError:
                    continue
        return bool(children)

    def _has_ended(self, timeout_s):
        if self._front.poll() is not None:
            return True
        if timeout_s <= 0:
            return False
        try:
            watched = os.pidfd_open(self._front.pid)
        except ProcessLookupError:
            return self._front.wait() is not None
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            if not poll.poll(timeout_s * 1000):
                return False
        finally:
            os.close(watched)
        return self._front.wait() is not None

    def _read_at(self, position):
        with self._lock:
            if self._completed is not None:
                return self._completed.stdout[position:]
            return os.pread(self._stdout.fileno(), 1 << 16, position)

    def _complete(self):
        with self._lock:
            if self._completed is None:
                self._completed = self._so_far()
                self._stdout.close()
                self._stderr.close()
            return self._completed

    def _so_far(self):
        returncode = self._front.returncode
        return Completed(
            self.command,
            -signal.SIGKILL if returncode is None else returncode,
            _content(self._stdout),
            _content(self._stderr),
            self._started_at_utc,
            _now(),
        )

    def _error(self, what):
        with self._lock:
            return command_error(self._completed or self._so_far(), what)


def result_of(process: Process, timeout_s: float, ok: Sequence[int] | None) -> Completed:
    """Wait for a command to end and return its output; kill it on timeout. See `Host.run`."""
    try:
        completed = process.wait(timeout_s)
    except BaseException:
        process.kill()
        raise
    if ok is not None and completed.returncode not in ok:
        raise command_error(completed, f"ended with status {completed.returncode}")
    return completed


def command_error(completed: Completed, what: str) -> CommandError:
    """A CommandError about a completed command; its message ends with the command's last output."""
    output = (completed.stderr.strip() or completed.stdout.strip()).decode(errors="replace")[-500:]
    error = CommandError(
        f"{' '.join(completed.command)} {what}" + (f"; its last output: {output}" if output else ".")
    )
    error.completed = completed
    return error


def _content(file):
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _now():
    return datetime.now(UTC).isoformat(timespec="microseconds")
