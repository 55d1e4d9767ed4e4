"""The local lab: one network namespace per region on this machine, joined by emulated links."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from wanbench.errors import LabError, ParameterError
from wanbench.labs.base import Completed, Host, Lab
from wanbench.labs.processes import EnteredProcess, command_error
from wanbench.links import LinkSettings, queue_in_bytes
from wanbench.links.control import Client
from wanbench.links.namespaces import address

SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.wan0.rp_filter": "0",
    "net.ipv6.conf.wan0.disable_ipv6": "1",
}


class LocalHost(Host):
    """A host of the local lab: an address in its region's namespace. The files are this machine's."""

    def __init__(self, name, region, address, entering, processes):
        self.name, self.region, self.address = name, region, address
        self._entering, self._processes = entering, processes

    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        process = self.start(command)
        try:
            completed = process.wait(timeout_s)
        except BaseException:
            process.kill()
            raise
        finally:
            self._processes.discard(process)
        if ok is not None and completed.returncode not in ok:
            raise command_error(completed, f"ended with status {completed.returncode}")
        return completed

    def start(self, command: Sequence[str]) -> EnteredProcess:
        process = EnteredProcess(command, self._entering)
        self._processes.add(process)
        return process

    def put(self, source: Path, target: str) -> None:
        shutil.copyfile(source, target)

    def get(self, source: str, target: Path) -> None:
        shutil.copyfile(source, target)

    def __repr__(self):
        return f"<host {self.name} at {self.address}>"


class LocalLab(Lab):
    kind = "local"

    def __init__(
        self,
        regions: Sequence[str],
        links: Mapping[tuple[str, str], LinkSettings],
        *,
        hosts_per_region: int = 1,
        emulator: str = "auto",
        sysctls: Mapping[str, str] | None = None,
        seed: int = 0,
    ):
        self.regions = tuple(regions)
        self.links = dict(links)
        self.hosts = {}
        self.hosts_per_region, self.seed = hosts_per_region, seed
        self.emulator = "relay"
        self.sysctls = {**SYSCTLS, **(sysctls or {})}
        self._numbers = {region: number for number, region in enumerate(self.regions, 1)}
        self._processes = set()
        self._unshare = None

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    def __enter__(self) -> LocalLab:
        rootless = os.geteuid() != 0
        ours, theirs = socket.socketpair()
        own = os.pidfd_open(os.getpid())
        self._keeper_words = tempfile.TemporaryFile()
        words = ["unshare", "--pid", "--fork", "--kill-child", "--net", "--mount"]
        if rootless:
            words += ["--user", "--map-root-user"]
        words += [sys.executable, "-P", "-m", "wanbench.links.keeper", str(theirs.fileno()), str(own)]
        words.append("rootless" if rootless else "root")
        package = str(Path(__file__).parents[2])
        self._unshare = subprocess.Popen(
            words,
            pass_fds=(theirs.fileno(), own),
            stdin=subprocess.DEVNULL,
            stdout=self._keeper_words,
            stderr=self._keeper_words,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])},
        )
        theirs.close()
        os.close(own)
        self._client = Client(ours)
        try:
            self._opened = self._client.ask(
                "open",
                emulator=self.emulator,
                regions=len(self.regions),
                hosts_per_region=self.hosts_per_region,
                sysctls=self.sysctls,
                pairs=[[self._numbers[a], self._numbers[b]] for a, b in self.links],
                seed=self.seed,
            )
            self._send_settings(self.links)
            self._hurry = self._client.ask("hurry")
            front = self._unshare.pid
            keeper = Path(f"/proc/{front}/task/{front}/children").read_text().split()[0]
            for region, descriptor in zip(self.regions, self._opened["namespaces"], strict=True):
                entering = ["nsenter", f"--target={keeper}"]
                if rootless:
                    entering += ["--user", "--preserve-credentials"]
                entering += [
                    "--pid",
                    "--mount",
                    f"--net=/proc/{keeper}/fd/{descriptor}",
                    "--wd",
                    "--",
                    "setsid",
                    "--",
                ]
                number = self._numbers[region]
                self.hosts[region] = [
                    LocalHost(f"{region}/{k}", region, address(number, k), entering, self._processes)
                    for k in range(self.hosts_per_region)
                ]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception) -> None:
        for process in list(self._processes):
            process.ask_to_end()
        for process in list(self._processes):
            process.stop()
        self._client.close()
        self._unshare.wait()
        self.hosts = {}

    def _send_settings(self, pairs):
        links = []
        for a, b in pairs:
            settings = self.links[a, b]
            back = self.links.get((b, a))
            fields = dataclasses.asdict(settings)
            fields["queue_bytes"] = queue_in_bytes(settings, back and back.delay_ms)
            links.append([self._numbers[a], self._numbers[b], fields])
        self._client.ask("set", links=links)

    def set_link(self, from_region: str, to_region: str, **changes) -> None:
        self.links[from_region, to_region] = dataclasses.replace(
            self.links[from_region, to_region], **changes
        )
        self._send_settings(
            [pair for pair in ((from_region, to_region), (to_region, from_region)) if pair in self.links]
        )

    def _cut(self, pairs, is_cut):
        numbered = [[self._numbers[x], self._numbers[y]] for x, y in pairs if (x, y) in self.links]
        self._client.ask("cut", pairs=numbered, is_cut=is_cut)

    def cut(self, a, b, *, one_way=False):
        self._cut([(a, b)] if one_way else [(a, b), (b, a)], True)

    def heal(self, a, b, *, one_way=False):
        self._cut([(a, b)] if one_way else [(a, b), (b, a)], False)

    def cut_region(self, a):
        self._cut([pair for pair in self.links if a in pair], True)

    def heal_region(self, a):
        self._cut([pair for pair in self.links if a in pair], False)

    def counters(self) -> list[dict]:
        pairs, rows = list(self.links), []
        for first in range(0, len(pairs), 100):
            some = pairs[first : first + 100]
            answers = self._client.ask(
                "counters", pairs=[[self._numbers[a], self._numbers[b]] for a, b in some]
            )
            rows += [
                {"from_region": a, "to_region": b, **row} for (a, b), row in zip(some, answers, strict=True)
            ]
        return rows

    def describe(self) -> dict:
        return {
            "kind": self.kind,
            "emulator": self.emulator,
            "lateness": self._client.ask("lateness"),
            "hurry": self._hurry,
            **self._opened,
        }
