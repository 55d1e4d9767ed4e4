"""A lab whose hosts answer from a script instead of running anything, for tests of measuring."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from wanbench.errors import CommandError
from wanbench.measure.labs.base import Completed, Host, Lab, Process
from wanbench.runs.journal import now_utc

PING_TEXT = (
    b"PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n[1.5] 64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=9 ms\n"
    b"\n--- 10.0.0.2 ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
)


PYTHON = b'{"executable": "python3", "modules": ["kafka", "wanbench"]}\n'
"""What a host answers that is asked for its Python."""


@dataclass
class Reply:
    """What a command prints, and how it ends: after `lasts_s`, or never by itself (None)."""

    stdout: bytes = b""
    stderr: bytes = b""
    returncode: int = 0
    lasts_s: float | None = 0.0


def well(host, command) -> Reply:
    """Everything works."""
    if command[0] == "ping":
        return Reply(PING_TEXT)
    if "-s" in command:
        return Reply(b"Server listening on 5201\n")
    return Reply(json.dumps({"start": {}, "intervals": [], "end": {}}).encode())


def counted(reply, command) -> Reply:
    """PING_TEXT with as many packets as the command asks for."""
    n = command[command.index("-c") + 1].encode() if command[0] == "ping" and "-c" in command else b"1"
    return replace(reply, stdout=reply.stdout.replace(b"\n1 packets", b"\n%s packets" % n))


class ScriptedProcess(Process):
    def __init__(self, command, reply):
        reply = counted(reply, command)
        self.command, self._reply = tuple(command), reply
        self._started, self._killed = now_utc(), threading.Event()
        self.stopped = False

    def wait_for_output(self, text, timeout_s):
        if text.encode() not in self._reply.stdout:
            raise CommandError(f"{self.command[0]} never printed {text!r}: {self._reply.stderr.decode()}")

    def wait(self, timeout_s):
        lasts_s = timeout_s if self._reply.lasts_s is None else min(self._reply.lasts_s, timeout_s)
        if self._killed.wait(lasts_s):
            return self._completed(-15)
        if self._reply.lasts_s is None or self._reply.lasts_s > timeout_s:
            raise CommandError(f"{self.command[0]} did not end within {timeout_s:g} s")
        return self._completed(self._reply.returncode)

    def is_running(self):
        return not self._killed.is_set() and self._reply.lasts_s != 0

    def printed(self, start=0):
        return self._reply.stdout[start:]

    def stop(self):
        self.stopped = True
        self._killed.set()
        return self._completed(self._reply.returncode if self._reply.lasts_s == 0 else -15)

    def _completed(self, returncode):
        return Completed(self.command, returncode, self._reply.stdout, self._reply.stderr, self._started, now_utc())


class ScriptedHost(Host):
    def __init__(self, lab, region, number):
        self.lab, self.region, self.name, self.address = lab, region, region, f"10.0.0.{number}"

    @property
    def scratch(self):
        raise NotImplementedError

    def run(self, command, *, timeout_s, ok=(0,)):
        if command[:2] == ["sh", "-c"]:  # `wanbench.measure.labs.programs` asks for the host's Python
            return ScriptedProcess(command, Reply(PYTHON)).wait(timeout_s)
        done = self.start(command).wait(timeout_s)
        if ok is not None and done.returncode not in ok:
            raise CommandError(f"{command[0]} ended with {done.returncode}")
        return done

    def start(self, command):
        process = ScriptedProcess(command, self.lab.script(self, command))
        self.lab.processes.append(process)
        return process

    def put(self, source, target):
        raise NotImplementedError

    def get(self, source, target):
        raise NotImplementedError


class ScriptedLab(Lab):
    """`script(host, command)` returns a Reply or raises; `opened` and `closed` count."""

    kind = "scripted"

    def __init__(self, regions, script: Callable = well, sysctls: dict | None = None):
        self.regions, self.script, self.sysctls = list(regions), script, sysctls or {}
        self.hosts, self.processes, self.opened, self.closed = {}, [], 0, 0

    def __enter__(self):
        self.opened += 1
        self.hosts = {region: [ScriptedHost(self, region, n)] for n, region in enumerate(self.regions, 1)}
        return self

    def __exit__(self, *exception):
        self.closed += 1
        for process in self.processes:
            process.stop()

    def describe(self):
        return {"kind": self.kind, "hosts": sorted(self.hosts), "tools": {"iperf3": "scripted"}}


class Scripted:
    """A host on which every command prints the same."""

    name = region = scratch = "scripted"
    python = None

    def __init__(self, stdout, stderr=b"", returncode=0):
        self.output = stdout, stderr, returncode

    def run(self, command, *, timeout_s, ok=(0,)):
        stdout, stderr, returncode = (PYTHON, b"", 0) if command[0] == "sh" else self.output
        return Completed(tuple(command), returncode, stdout, stderr, "", "")

    def put(self, source, target):
        pass
