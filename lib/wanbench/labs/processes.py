"""Commands of a lab that run as processes of this machine. Imports `errors` and `base` only."""

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

_GRACE_S = 2.0


def checked(command: Sequence[str]) -> tuple[str, ...]:
    """The command as a tuple; ParameterError unless it is a sequence of at least one word."""
    if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
        raise ParameterError(f"a command is a list of words, the program first; given was {command!r}.")
    return tuple(command)


class EnteredProcess(Process):
    """
    A command that another program, such as nsenter, runs for us as its only child.

    What it prints goes to files that have no name, so it never waits for a reader, and nothing is left behind.

    Parameters
    ----------
    command : sequence of str
        The command itself, as it is shown and recorded.
    entering : sequence of str
        The words in front of it. They must make the command the leader of its own session.
    """

    def __init__(self, command: Sequence[str], entering: Sequence[str]):
        self.command = checked(command)
        self._lock = threading.RLock()
        self._completed = None
        self._stdout, self._stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self._started_at_utc = _now()
        try:
            self._popen = subprocess.Popen(
                [*entering, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise LabError(f"{entering[0]} cannot be started: {error}") from None

    def wait_for_output(self, text: str, timeout_s: float) -> None:
        wanted, seen, read = text.encode(), b"", 0
        deadline, pause = time.monotonic() + timeout_s, 0.001
        while True:
            ended = self._ended(0)
            while more := os.pread(self._stdout.fileno(), 1 << 16, read):
                read += len(more)
                seen = seen[-len(wanted) :] + more
                if wanted in seen:
                    return
            if ended:
                raise self._error(f"ended with status {self._popen.returncode} before it printed {text!r}")
            if time.monotonic() > deadline:
                raise self._error(f"did not print {text!r} within {timeout_s:g} s")
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)

    def wait(self, timeout_s: float) -> Completed:
        if not self._ended(timeout_s):
            raise self._error(f"did not end within {timeout_s:g} s")
        return self._complete()

    def stop(self) -> Completed:
        self.ask_to_end()
        if not self._ended(_GRACE_S):
            self.kill()
        return self._complete()

    def ask_to_end(self) -> None:
        """Send the command SIGTERM, if it still runs."""
        deadline = time.monotonic() + _GRACE_S
        while not self._ended(0):
            if self._signal(signal.SIGTERM):
                return
            # It is so young that the program in front has not started it yet.
            if time.monotonic() > deadline:
                return
            time.sleep(0.001)

    def kill(self) -> Completed:
        """End the command and everything it started, now."""
        self._signal(signal.SIGKILL)
        if not self._ended(0):
            self._popen.kill()
            self._popen.wait()
        return self._complete()

    def _signal(self, number):
        """Signal the command's whole group; False if there is none."""
        front = self._popen.pid
        try:
            children = Path(f"/proc/{front}/task/{front}/children").read_text().split()
        except OSError:
            return False
        for child in map(int, children):
            try:
                os.killpg(child, number)
            except ProcessLookupError:
                try:
                    os.kill(child, number)
                except ProcessLookupError:
                    continue
        return bool(children)

    def _ended(self, timeout_s):
        if self._popen.poll() is not None:
            return True
        if timeout_s <= 0:
            return False
        try:
            watched = os.pidfd_open(self._popen.pid)
        except ProcessLookupError:
            self._popen.wait()
            return True
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            if not poll.poll(timeout_s * 1000):
                return False
        finally:
            os.close(watched)
        self._popen.wait()
        return True

    def _complete(self):
        with self._lock:
            if self._completed is None:
                ended_at_utc = _now()
                self._completed = self._as_it_is(ended_at_utc)
                self._stdout.close()
                self._stderr.close()
            return self._completed

    def _as_it_is(self, ended_at_utc):
        return Completed(
            self.command,
            self._popen.returncode if self._popen.returncode is not None else -signal.SIGKILL,
            _content(self._stdout),
            _content(self._stderr),
            self._started_at_utc,
            ended_at_utc,
        )

    def _error(self, what):
        return command_error(self._completed or self._as_it_is(_now()), what)


def command_error(completed: Completed, what: str) -> CommandError:
    """A CommandError that ends with the command's last words; its `completed` has all it printed."""
    words = (completed.stderr.strip() or completed.stdout.strip()).decode(errors="replace")[-500:]
    error = CommandError(
        f"{' '.join(completed.command)} {what}" + (f"; its last words: {words}" if words else ".")
    )
    error.completed = completed
    return error


def _content(file):
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _now():
    return datetime.now(UTC).isoformat(timespec="microseconds")
