"""Reach one host by SSH: run commands, copy files, reconnect."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from wanbench.errors import LabError
from wanbench.measure.labs.base import Completed, Host
from wanbench.measure.labs.processes import OUTPUT_BYTES, PolledProcess, failed_if_incomplete, read_all, result_of

from .connection import CHUNK, Connection, ConnectionLost, Login

PATIENCE_S = 30.0  # Time without a message after which both sides disconnect: longer than a change of routes takes.
STREAMS = ("stdout", "stderr")


class HostRebooted(LabError):
    """The host has been rebooted since the last connection; its commands and its scratch folder are gone."""


@dataclass
class _Kept:
    """The connection to a host and its address on the path in use, which copies of an `SshHost` share."""

    address: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: Connection | None = None
    boot_id: str | None = None


class SshHost(Host):
    """
    A host whose commands run through one permanent SSH connection.

    If the connection is lost, the supervisor on the host ends all commands. The next command connects again; if the
    host was rebooted meanwhile, this command fails with HostRebooted.

    `address` and `address_ipv6` are used for measuring: at these the lab's hosts reach each other. A lab with several
    paths changes `address`, also that of copies of the host. A host without a
    `login` cannot be opened. `python` must be 3.8 or newer. With `sudo` every command runs as root, by `sudo -n`.
    `folder` is the folder in which the next connection makes the scratch folder; by default, it is the host's folder
    for temporary files.
    """

    folder: str | None = None

    def __init__(
        self,
        name: str,
        region: str,
        address: str,
        login: Login | None = None,
        *,
        python: str = "python3",
        sudo: bool = False,
        patience_s: float = PATIENCE_S,
        address_ipv6: str | None = None,
    ):
        self.name, self.region, self.login = name, region, login
        self.python, self.sudo, self.patience_s, self.address_ipv6 = python, sudo, patience_s, address_ipv6
        self._kept = _Kept(address)

    @property
    def address(self) -> str:
        """The host's address on the path in use."""
        return self._kept.address

    @address.setter
    def address(self, address: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]  # copies share it
        self._kept.address = address

    def open(self) -> SshHost:
        """
        Connect to the host. Other methods reconnect if the connection was lost. Raise LabError if the host cannot be
        reached, its key is not in `known_hosts_file`, or it has no working Python.
        """
        with self._kept.lock:
            if self._kept.connection is None:
                self._kept.connection = self._connect()
                self._kept.boot_id = self._kept.connection.hello["boot_id"]
        return self

    def close(self) -> None:
        """End all commands, remove the scratch folder, and disconnect. Safe to call twice."""
        with self._kept.lock:
            connection, self._kept.connection = self._kept.connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> SshHost:
        return self.open()

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def connection(self) -> Connection:
        """
        Return the open connection, after reconnecting if it was lost.

        Raise LabError if the host cannot be reached, or was rebooted since the last connection.
        """
        with self._kept.lock:
            if self._kept.connection is None:
                raise LabError(f"{self.name} is not open; use its lab in a with statement.")
            if not self._kept.connection.is_open:
                lost = self._kept.connection.reason
                try:
                    self._kept.connection = self._connect()
                except LabError as error:
                    raise LabError(f"{lost}; {error}") from None
                before, self._kept.boot_id = self._kept.boot_id, self._kept.connection.hello["boot_id"]
                if self._kept.boot_id != before:
                    raise HostRebooted(f"{self.name} was rebooted; {lost}")
            return self._kept.connection

    def check(self) -> None:
        """Raise LabError if the host does not answer, even after reconnecting."""
        with suppress(HostRebooted, ConnectionLost):
            self.connection.ask("clock")
        self.connection.ask("clock")

    @property
    def scratch(self) -> str:
        return self.connection.hello["scratch"]

    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        return result_of(self.start(command), timeout_s, ok)

    def start(self, command: Sequence[str]) -> SshProcess:
        return SshProcess(self.connection, command)

    def put(self, source: Path, target: str) -> None:
        connection = self.connection
        try:
            with open(source, "rb") as file:
                connection.ask("put", file.read(CHUNK), path=target, start=0)
                while data := file.read(CHUNK):
                    connection.ask("put", data, path=target, start=file.tell() - len(data))
        except OSError as error:
            raise LabError(f"{source} cannot be read: {error.strerror or error}.") from None

    def get(self, source: str, target: Path) -> None:
        connection = self.connection
        try:
            with open(target, "wb") as file:
                while data := connection.ask("get", path=source, start=file.tell())[1]:
                    file.write(data)
        except OSError as error:
            raise LabError(f"{target} cannot be written: {error.strerror or error}.") from None

    def _connect(self) -> Connection:
        if self.login is None:
            raise LabError(f"{self.name} cannot be opened: it has no login.")
        return Connection(self.name, self.login, self.patience_s, str(self.python), self.sudo, self.folder)


class SshProcess(PolledProcess):
    """
    A command on a host. Its times are those of the host's clock.

    If the connection is lost, `wait` and `printed` raise LabError; `stop` returns the output received so far and the
    status -9, because the host ends the command.
    """

    longest_pause_s = 0.2

    def __init__(self, connection: Connection, command: Sequence[str]):
        super().__init__(command)
        self._connection, self._name = connection, uuid4().hex
        self._end, self._ended, self._output = threading.Event(), None, b""
        connection.watch(self._name, self._on_end)
        started, _ = connection.ask("start", name=self._name, command=list(self.command))
        self._started_at_utc = started["started_at_utc"]

    def wait(self, timeout_s: float) -> Completed:
        if self._has_ended(timeout_s) and self._ended is None:
            raise self._cut_short()
        return super().wait(timeout_s)

    def _has_ended(self, timeout_s: float) -> bool:
        return self._end.wait(max(0.0, timeout_s))

    def _cut_short(self):
        return ConnectionLost(f"{self.command[0]} was interrupted: {self._connection.reason}")

    def ask_to_end(self) -> None:
        """Send SIGTERM to the command and its process group, if it still runs."""
        self._signal(signal.SIGTERM)

    def kill(self) -> Completed:
        """Kill the command and its process group, and return its result."""
        self._signal(signal.SIGKILL)
        self._end.wait(2 * self._connection.patience_s)
        return self._complete()

    def _signal(self, number: int) -> None:
        if not self._end.is_set():
            try:
                self._connection.ask("signal", name=self._name, number=int(number))
            except LabError:  # then the host ends the command
                self._end.wait(1)

    def _on_end(self, ended: dict[str, Any] | None, output: bytes) -> None:
        self._ended, self._output = ended, output
        self._end.set()

    def _read_at(self, position: int, stream: str = "stdout") -> bytes:
        if self._completed is not None:
            return getattr(self._completed, stream)[position:]
        if not self._end.is_set():
            answer, data = self._connection.ask("read", name=self._name, stream=stream, start=position)
            if "forgotten" not in answer:
                return data
            self._end.wait(self._connection.patience_s)
        if self._ended is None:
            raise self._cut_short()
        return getattr(self._complete(), stream)[position:]

    def _complete(self):
        with self._lock:
            if self._completed is None:
                ended: dict[str, Any] = self._ended or {"sizes": [0, 0], "whole": True, "status": -signal.SIGKILL}
                size = ended["sizes"][0]
                if ended["whole"]:
                    stdout, stderr = self._output[:size], self._output[size:]
                else:
                    stdout, stderr = (read_all(partial(self._read, stream), most=OUTPUT_BYTES) for stream in STREAMS)
                    self._connection.ask("forget", name=self._name)
                began, over = self._started_at_utc, ended.get("ended_at_utc") or self._started_at_utc
                done = Completed(self.command, ended["status"], stdout, stderr, began, over)
                self._completed = failed_if_incomplete(done, ended["sizes"], ended.get("disk_is_full", False))
            return self._completed

    def _read(self, stream: str, start: int) -> bytes:
        return self._connection.ask("read", name=self._name, stream=stream, start=start)[1]

    def _so_far(self):
        try:
            stdout, stderr = (read_all(partial(self._read_at, stream=stream)) for stream in STREAMS)
        except LabError:
            stdout, stderr = b"", b""
        return Completed(self.command, -signal.SIGKILL, stdout, stderr, self._started_at_utc, self._started_at_utc)
