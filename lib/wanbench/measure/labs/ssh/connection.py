"""Connect to a host: an `ssh` process here, and on the host the supervisor that runs commands."""

from __future__ import annotations

import json
import os
import queue
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.processes import OUTPUT_BYTES

from .programs import supervisor

CONNECT_S = 15  # Timeout of connecting by TCP and exchanging keys; three round trips take 1 s on the longest paths.


@dataclass(frozen=True)
class Login:
    """
    How to log in to a host by SSH, without prompts.

    `address` may differ from the address used for measuring. `key_file` is the private key; only its path appears on
    command lines. `known_hosts_file` has lines as `ssh-keyscan` prints them; a host that is not in this file, or has
    another key, is refused. `jump` is the login of a host to connect through. Alternatively `proxy_command` is a
    program whose stdin and stdout replace the TCP connection; "%h" and "%p" in it stand for address and port.
    """

    address: str
    user: str
    key_file: str | Path
    known_hosts_file: str | Path
    port: int = 22
    jump: Login | None = None
    proxy_command: tuple[str, ...] = ()

    def command(self, remote: Sequence[str], alive_s: float) -> list[str]:
        """
        Return the ssh command that runs `remote` on the host and ends if the host is silent for about `alive_s`.

        The user's own configuration of SSH is ignored, so that the inventory alone determines the connection.
        """
        return [*self._ssh(alive_s), "-l", self.user, self.address, "--", shlex.join(remote)]

    def without_secrets(self, text: str, name: str) -> str:
        """
        Return a message of ssh for the journal: `name` replaces "user@address" and the address; key paths are left out.

        The same holds for the jump host. A user's name without the address stays.
        """
        if self.jump is not None:
            text = self.jump.without_secrets(text, f"{name}'s jump")
        for path in (self.key_file, self.known_hosts_file):
            text = text.replace(str(path), "(a file of the inventory)")
        return text.replace(f"{self.user}@{self.address}", name).replace(self.address, name)

    def _ssh(self, alive_s: float) -> list[str]:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": _quoted(self.known_hosts_file),
            "GlobalKnownHostsFile": "/dev/null",
            "UpdateHostKeys": "no",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "IdentityFile": _quoted(self.key_file),
            "ConnectTimeout": CONNECT_S,
            "ServerAliveInterval": max(1, round(alive_s / 3)),
            "ServerAliveCountMax": 3,
            "LogLevel": "ERROR",
        }
        if proxy := self._proxy(alive_s):
            options["ProxyCommand"] = proxy
        words = [f"-o{name}={value}" for name, value in options.items()]
        return ["ssh", "-F", "none", "-T", "-a", "-x", *words, "-p", str(self.port)]

    def _proxy(self, alive_s: float) -> str | None:
        if self.jump is not None:
            target = ["-W", f"[{self.address}]:{self.port}", "-l", self.jump.user, self.jump.address]
            return shlex.join([*self.jump._ssh(alive_s), *target]).replace("%", "%%")
        # The inventory refuses any other "%", so ssh replaces only %h and %p.
        return shlex.join(self.proxy_command) if self.proxy_command else None


def _quoted(path: str | Path) -> str:
    """Return a path as the value of an ssh option: quoted if it has spaces; "%" is doubled, as ssh would expand it."""
    text = os.path.abspath(os.path.expanduser(path)).replace("%", "%%")
    return f'"{text}"' if " " in text else text


CHUNK = supervisor.CHUNK  # Maximum bytes of a file, or of a command's output, in one message.
END_S = supervisor.GRACE_S + 8.0
MAX_NOISE = 65_536  # Maximum bytes that a login shell may print before the supervisor starts.
_BOOTSTRAP = "import sys;exec(compile(sys.stdin.buffer.read({size}),'wanbench-supervisor','exec'))"


class ConnectionLost(LabError):
    """The connection to a host ended, or the host does not answer; the host ends all commands of the lab."""


class Connection:
    """
    An open connection, which several threads can use at the same time.

    Each side closes the connection after `patience_s` without a message; the host then ends all commands. `python` is
    the host's Python; with `sudo` it runs as root, by `sudo -n`. The scratch folder is made in `folder`, by default in
    the host's folder for temporary files. LabError, with the last line printed, if ssh or the host's Python cannot be
    started.
    """

    def __init__(self, name: str, login: Login, patience_s: float, python: str, sudo: bool, folder: str | None):
        self.name, self.patience_s, self._login = name, patience_s, login
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._ids, self._waiting, self._ended = count(1), {}, {}
        self._write_lock, self._state_lock = threading.Lock(), threading.Lock()
        self.reason = ""  # why the connection is not open any more
        self._closing = threading.Event()
        program = Path(supervisor.__file__).read_bytes()
        remote = ["exec", *(["sudo", "-n", "--"] if sudo else []), *(["env", f"TMPDIR={folder}"] if folder else [])]
        words = login.command([*remote, python, "-c", _BOOTSTRAP.format(size=len(program))], patience_s)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._said}
        try:
            self._ssh: Any = subprocess.Popen(words, **pipes, start_new_session=True, bufsize=0)
        except OSError as error:
            self._said.close()
            raise LabError(
                f"ssh cannot be started: {error.strerror or error}; `wanbench doctor` says how to install it."
            ) from None
        try:
            self._begin(program)
            self.hello, _ = self.ask("hello", patience_s=patience_s, output_bytes=OUTPUT_BYTES)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open, as far as this side knows."""
        return not self.reason

    def ask(self, verb: str, payload: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        """
        Send a request, and return the answer's fields and payload. Raise ConnectionLost if the connection is lost, and
        LabError, with the host's message, if the host cannot carry out the request.
        """
        future: Future[tuple[dict[str, Any], bytes]] = Future()
        with self._state_lock:
            if self.reason:
                raise ConnectionLost(self.reason)
            number = next(self._ids)
            self._waiting[number] = future
        self._send({"id": number, "verb": verb, **fields}, payload)
        try:
            reply, back = future.result(2 * self.patience_s)
        except FutureTimeoutError:
            self._lose(f"{self.name} did not answer within {2 * self.patience_s:g} s")
            raise ConnectionLost(self.reason) from None
        if "error" in reply:
            raise LabError(f"{fields.get('path', verb)} on {self.name}: {reply['error']}")
        return reply, back

    def watch(self, name: str, on_end: Callable[[dict[str, Any] | None, bytes], None]) -> None:
        """Call `on_end(fields, output)` when a command ends, or `on_end(None, b"")` when the connection ends first."""
        with self._state_lock:
            if not self.reason:
                self._ended[name] = on_end
                return
        on_end(None, b"")

    def close(self) -> None:
        """Close the connection, and wait until the host has ended all commands. Safe to call twice."""
        self._closing.set()
        with self._write_lock, suppress(OSError):
            self._ssh.stdin.close()
        try:
            self._ssh.wait(END_S)
        except BaseException as error:
            self._ssh.kill()
            self._ssh.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        self._lose(f"the connection to {self.name} is closed")

    def _begin(self, program: bytes) -> None:
        """Send the supervisor's program, and wait until it starts."""
        first: queue.SimpleQueue[bool] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(first,), name=f"ssh {self.name}", daemon=True).start()
        with suppress(OSError):  # ssh ended before it read everything; the reason is found below
            self._write(program)
        try:
            started = first.get(timeout=2 * CONNECT_S + self.patience_s)
        except queue.Empty:
            started = False
        if not started:
            self._ssh.kill()
            self._ssh.wait()
            raise ConnectionLost(f"{self.name} cannot be reached by SSH: {self._last_said()}")
        threading.Thread(target=self._beat, name=f"ssh {self.name}, alive", daemon=True).start()

    def _listen(self, first: queue.SimpleQueue[bool]) -> None:
        """Handle messages from the host until the connection ends."""
        try:
            with open(self._ssh.stdout.fileno(), "rb", buffering=CHUNK, closefd=False) as stream:
                noise = 0
                while not (line := stream.readline(MAX_NOISE)).startswith(b'{"wanbench"'):
                    noise += len(line)
                    if not line or noise > MAX_NOISE:
                        raise ValueError(line)
                first.put(True)
                while line := stream.readline():
                    reply = json.loads(line)
                    self._take(reply, stream.read(reply["size"]))
        except (OSError, ValueError, LookupError):
            pass  # too much output of the login shell, or an incomplete line because the connection broke
        first.put(False)
        with suppress(subprocess.TimeoutExpired):
            self._ssh.wait(5)
        self._lose(f"the connection to {self.name} was lost: {self._last_said()}")

    def _take(self, reply: dict[str, Any], payload: bytes) -> None:
        with self._state_lock:
            on_end = self._ended.pop(reply.get("ended"), None)
            future = self._waiting.pop(reply.get("id"), None)
        if on_end:
            on_end(reply, payload)
        if future:
            future.set_result((reply, payload))

    def _beat(self):
        """Send a request at intervals, so that neither side closes the connection."""
        while not self._closing.wait(self.patience_s / 5) and self.is_open:
            with suppress(LabError):
                self.ask("clock")

    def _send(self, request: Mapping[str, object], payload: bytes) -> None:
        try:
            self._write(json.dumps({**request, "size": len(payload)}).encode() + b"\n" + payload)
        except (OSError, ValueError):  # ValueError: closed
            self._lose(f"the connection to {self.name} was lost: {self._last_said()}")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._write_lock:
            while view:
                view = view[self._ssh.stdin.write(view) :]

    def _lose(self, reason: str) -> None:
        """Mark the connection as lost, and fail all waiting requests; the first reason is kept."""
        with self._state_lock:
            if not self.reason:
                self.reason = reason
            waiting, self._waiting = self._waiting, {}
            ended, self._ended = self._ended, {}
        self._closing.set()
        for future in waiting.values():
            with suppress(Exception):
                future.set_exception(ConnectionLost(self.reason))
        for on_end in ended.values():
            on_end(None, b"")
        if self._ssh.poll() is None:
            self._ssh.kill()

    def _last_said(self):
        with suppress(OSError, ValueError):
            size = self._said.seek(0, 2)
            self._said.seek(max(0, size - 2000))
            lines = self._said.read().decode(errors="replace").strip().splitlines()
            if lines:
                return self._login.without_secrets(lines[-1].strip(), self.name)[:300]
        status = self._ssh.poll()
        return "it ended" if status is None else f"ssh ended with status {status}"
