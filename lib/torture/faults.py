"""
The faults, by kind: what does the harm, to which study, and how the study may end.

A fault's function is given the study, not yet started, and a random generator. `endings` has, by exit status, what the
last lines of its output must say (a regular expression): what happened and, where something is to be done, what.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .watched import CAMPAIGN, ENTRY, LONGEST_S, WANBENCH, NotPossible, Study, is_any, is_helper, is_supervisor, unmount

AFTER_S = 0.4  # the longest pause between one signal and the next
PAUSED_S = 3.0  # the longest time for which a process is stopped, or a port is taken
LOST_S = 10.0  # the longest time for which a host does not answer: more than twice what both sides have patience for
PROGRAMS = "wanbench.measure.kafka.programs."
STARTS_S = 1.0  # the command has started after this time
CLOCK_STEPS_S = (5, -5, 3600, -3600, 86_400, -86_400)


@dataclass(frozen=True)
class Fault:
    """What does the harm, the study that suffers it, whether that measures on a small disk, and how it may end."""

    act: Callable[[Study, random.Random], None]
    endings: Mapping[int, str]
    study: str = "survey"
    own_disk: bool = False


def _name(words) -> str:
    return Path(words[0]).name


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _is_forked(pid: int, words) -> bool:
    return any("forkserver" in word for word in words)


def _is_kernel(pid: int, words) -> bool:
    """Return whether it is the process that the server of forks made for the notebook."""
    return _is_forked(pid, words) and "forkserver" in Path(f"/proc/{_parent(pid)}/cmdline").read_text()


TARGETS = {
    "the driver": lambda pid, words: "torture.study" in words or ENTRY in words,
    "the helper": is_helper,
    "the helper's parent": lambda pid, words: (
        _name(words) == "unshare" and any("lab_supervisor" in word for word in words)
    ),
    "a tool": lambda pid, words: _name(words) in ("ping", "iperf3"),
    "a supervisor": is_supervisor,
    "supervisors": is_supervisor,
    "an SSH client": lambda pid, words: _name(words) == "ssh",
    "every process": is_any,
    "the kernel": _is_kernel,
    "the server of forks": lambda pid, words: _is_forked(pid, words) and not _is_kernel(pid, words),
    "a broker": lambda pid, words: _name(words) == "java" and "kafka.Kafka" in words,
    "MirrorMaker": lambda pid, words: "org.apache.kafka.connect.mirror.MirrorMaker" in words,
    "a watcher": lambda pid, words: PROGRAMS + "watch" in words,
    "a client": lambda pid, words: any(
        word.startswith(PROGRAMS) and word.endswith(("_consumer", "_producer")) for word in words
    ),
}


def _found(study: Study, chance: random.Random, target: str) -> list[int]:
    """Wait for processes that a target names, and return them; one of them if the name begins with "a" or "an"."""
    while not (pids := study.processes(TARGETS[target])) and study.driver.poll() is None:
        time.sleep(0.02)
    if not pids:
        raise NotPossible(f"no such process runs any more: {target}")
    return [chance.choice(pids)] if _is_one(target) else pids


def _is_one(target):
    return target.split()[0] in ("a", "an")


def signalled(target: str, number: signal.Signals):
    """Return a fault that sends a signal once, twice or thrice to what a target names."""

    def fault(study: Study, chance: random.Random):
        study.wait(chance)
        pids = _found(study, chance, target)
        for _ in range(chance.randint(1, 3)):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(chance.uniform(0, AFTER_S))
            pids = pids if _is_one(target) else study.processes(TARGETS[target])

    return fault


def paused(target: str, longest_s: float = PAUSED_S):
    """Return a fault that stops processes for some seconds, and lets them go on."""

    def fault(study: Study, chance: random.Random):
        study.wait(chance)
        pids = _found(study, chance, target)
        for number, pause_s in ((signal.SIGSTOP, chance.uniform(0, longest_s)), (signal.SIGCONT, 0)):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(pause_s)

    return fault


def on_a_host(harm: Callable[..., None]):
    """Return a fault that harms one of the hosts by SSH: `harm(hosts, region, seconds)`."""

    def fault(study: Study, chance: random.Random):
        study.wait(chance)
        harm(study.hosts, chance.choice(study.hosts.regions), chance.uniform(0, LOST_S))

    return fault


def _sessions_killed(hosts, region, _):
    if pids := hosts.sessions(region):
        hosts.lab.host(region).run(["kill", "-9", *pids], timeout_s=30, ok=None)


def _cut_off(hosts, region, seconds):
    """Cut the host off from the driver, not from other hosts."""
    (operator,) = hosts.lab.hosts.keys() - set(hosts.regions)
    hosts.lab.cut(operator, region)
    time.sleep(seconds)
    hosts.lab.heal(operator, region)


def _rebooted(hosts, region, _):
    hosts.reboot(region)


def early(study: Study, chance: random.Random):
    """Press Ctrl-C once, twice or thrice while the command starts."""
    study.resumes = False
    started = study.start()
    status = Path(f"/proc/{started.process.pid}/status")
    began = time.monotonic()
    while time.monotonic() - began < STARTS_S:
        caught = next((line for line in status.read_text().splitlines() if line.startswith("SigCgt")), "SigCgt: 0")
        if int(caught.split()[1], 16) & 1 << signal.SIGINT - 1:
            break
        time.sleep(0.001)
    time.sleep(chance.uniform(0, STARTS_S))
    for _ in range(chance.randint(1, 3)):
        if started.process.poll() is None:
            started.process.send_signal(signal.SIGINT)
        time.sleep(chance.uniform(0, AFTER_S))
    started.process.wait(LONGEST_S)
    if "Traceback" in (said := started.said()) and "/wanbench/" not in said:
        raise NotPossible("Python had not yet reached the command")


def removed(study: Study, chance: random.Random):
    """Remove the data folder."""
    study.wait(chance)
    shutil.rmtree(study.data, ignore_errors=True)
    study.expects_kept = False


def read_only(study: Study, chance: random.Random):
    """Make the disk read-only, and writable again after the end."""
    study.wait(chance)
    subprocess.run(["mount", "--bind", study.data, study.data], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", study.data], check=True)
    study.mend = lambda: unmount(study.data)


def full(study: Study, chance: random.Random):
    """Fill the disk, and empty it after the end."""
    filler = study.data / "filler"
    study.wait(chance)
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    study.mend = filler.unlink


def two_drivers(study: Study, chance: random.Random):
    """Start a second driver on the same campaign, which waits for the first or does not."""
    study.wait(chance)
    study.start(**_sharing(chance))


def two_campaigns(study: Study, chance: random.Random):
    """Start a driver of another campaign on the same machine, which waits for the first or does not."""
    study.wait(chance)
    study.start(["other" if word == CAMPAIGN else word for word in study.command], **_sharing(chance))


def _sharing(chance: random.Random) -> dict[str, str]:
    return chance.choice([{}, {"WANBENCH_SHARE_MACHINE": "1"}])


def disturbed(how: str):
    """Return a fault that takes iperf3's ports, or keeps its servers busy, for a while or to the end."""

    def fault(study: Study, chance: random.Random):
        study.wait(chance)
        seconds = chance.choice([chance.uniform(0, PAUSED_S), 60])
        study.inside([sys.executable, "-m", "torture.intruder", how, f"{seconds:.2f}"])

    return fault


def clock_stepped(study: Study, chance: random.Random):
    """Step the clock that the driver and its helper see; this machine's own clock is left alone."""
    if (compiler := shutil.which("cc")) is None:
        raise NotPossible("there is no C compiler for the library that steps the clock (apt-get install gcc)")
    clock, library = study.folder / "clock", study.folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, Path(__file__).with_name("clock.c")], check=True)
    clock.write_bytes(bytes(8))
    study.environment = {"LD_PRELOAD": str(library), "TORTURE_CLOCK": str(clock)}
    study.wait(chance)
    with clock.open("r+b") as file:
        file.write(struct.pack("q", chance.choice(CLOCK_STEPS_S)))


def hostile(study: Study, chance: random.Random):
    """Cut, empty or overwrite a raw file of the run while its driver is killed."""
    study.wait(chance)
    study.driver.kill()
    study.driver.wait()
    raw = [path for path in sorted(study.data.glob("raw/*/*/*/*")) if path.is_file()]
    if not raw:
        raise NotPossible("nothing was measured yet")
    path = chance.choice(raw)
    path.write_bytes(_damaged(path.read_bytes(), chance))
    study.damaged = path


def _damaged(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(1, len(content) or 2)
    return chance.choice(
        [b"", content[:at], chance.randbytes(2000), b"<script>\x00{" * 99, content[:at] + b"\xff\xfe\x00"]
    )


INVENTORY = """\
defaults: {user: admin, key_file: key, known_hosts_file: known_hosts}
jumps:
  gate: {address: 127.0.0.1, port: 1}
hosts:
  - {name: dublin, region: aws:eu-west-1, control_address: 127.0.0.1, port: 1, address: 127.0.0.1}
  - {name: oregon, region: gcp:us-west1, control_address: 127.0.0.1, jump: gate, patience_s: 5}
"""
HOSTILE_LINES = (
    "hosts: 3", "unknown: {a: b}", "hosts: [1, null, {}]", "  - {name: [], region: {}}", "hosts: &a [*a]", "\t- x",
    "defaults: [" + "[" * 2000, "hosts: [{name: <script>}]", "x: " + "9" * 5000, "? !!python/object:os.system {}",
)  # fmt: skip


def hostile_inventory(study: Study, chance: random.Random):
    """Let the doctor read an inventory that is cut, binary, of the wrong shape, or with unknown keys."""
    study.resumes = False
    path = study.folder / "hosts.yml"
    lines = INVENTORY.splitlines()
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(HOSTILE_LINES))
    text = chance.choice([_damaged(INVENTORY.encode(), chance), "\n".join(lines).encode()])
    path.write_bytes(text)
    study.start([*WANBENCH, "doctor", "--inventory", str(path)])


def rented(cloud: str):
    """Return a fault that kills a driver of rented hosts, and sweeps, beside resources of others with similar tags."""

    def fault(study: Study, chance: random.Random):
        study.resumes = False
        study.start([sys.executable, "-m", "torture.clouds", cloud, str(chance.randrange(2**32))])

    return fault


KEPT = r"The measurements are kept; (the next call continues|repeat the command to continue)"
STOPPED = r"(terminated|interrupted)\."
DONE = {0: r"2 of 2 tests are done|1 of 1 pages published"}
FAILED = {0: rf"{DONE[0]}|[12] failed, 0 left"}  # a test that fails as often as it is tried is a result
OPEN = {2: r"The run stays open: remove the cause and start again"}
KILLED = {-signal.SIGKILL: r""}  # nobody can speak after that
AFTER = {  # a second or third signal may come when everything is said
    signal.SIGINT: {130: rf"interrupted\. ({KEPT}|Nothing was measured)", -signal.SIGINT: rf"interrupted\.|{DONE[0]}"},
    signal.SIGTERM: {143: rf"{STOPPED} {KEPT}", -signal.SIGTERM: rf"{STOPPED}|{DONE[0]}"},
    signal.SIGHUP: {129: rf"{STOPPED} {KEPT}", -signal.SIGHUP: rf"{STOPPED}|{DONE[0]}"},
    signal.SIGKILL: KILLED,
}
LAB_ENDED = {2: r"the lab's supervisor ended during .*What was measured is kept: start again"}
FAILED_PAGE = {1: r"the kernel died|0 of 1 pages published"}
DISK = {2: r"No space left on device|Read-only file system"}
BROKER = {2: r"(broker|mirror) \d on .* ended"}
LOST = {2: r"cannot be reached by SSH|was lost|was rebooted"}
INTERRUPT, END, HANG_UP, KILL = AFTER
SSH, THREE, MIRROR = "hosts by SSH", "three brokers", "mirrored clusters"


def _signals(numbers, target, endings, study="survey") -> dict[str, Fault]:
    """Return faults that send one of these signals to a target; `endings(number)` is how the study may end."""
    where = "" if study == "survey" else f" ({study})"
    return {
        f"{number.name} to {target}{where}": Fault(signalled(target, number), endings(number), study)
        for number in numbers
    }


FAULTS = (
    _signals(AFTER, "the driver", lambda number: DONE | AFTER[number])
    | _signals((END, KILL), "the helper", lambda number: DONE | LAB_ENDED)
    | _signals((END, KILL), "the helper's parent", lambda number: DONE | LAB_ENDED)
    | _signals((END, KILL), "a tool", lambda number: FAILED | OPEN)
    | _signals((INTERRUPT, END, KILL), "every process", lambda number: DONE | AFTER[number] | LAB_ENDED)
    | _signals((INTERRUPT, END, KILL), "the driver", lambda number: DONE | AFTER[number], "page")
    | _signals((INTERRUPT, END, KILL), "the kernel", lambda number: DONE | FAILED_PAGE | AFTER[INTERRUPT], "page")
    | _signals((KILL,), "the server of forks", lambda number: DONE | FAILED_PAGE, "page")
    | {
        "Ctrl-C while the command starts": Fault(early, DONE | AFTER[INTERRUPT] | {130: r"interrupted"}, "page"),
        "relay paused": Fault(paused("the helper"), FAILED | OPEN | LAB_ENDED),
        "tool paused": Fault(paused("a tool"), FAILED | OPEN),
        "data folder removed": Fault(
            removed, DONE | {2: r"No such file or directory|which was removed while it was in use"}
        ),
        "disk read-only": Fault(read_only, DONE | DISK, own_disk=True),
        "disk full": Fault(full, DONE | DISK, own_disk=True),
        "two drivers on one campaign": Fault(
            two_drivers, DONE | {2: r"Another process is measuring into .*; wait for it, or stop it"}
        ),
        "two campaigns on one machine": Fault(two_campaigns, DONE),
        "ports of iperf3 taken": Fault(disturbed("taken"), FAILED | OPEN),
        "servers of iperf3 busy": Fault(disturbed("busy"), FAILED | OPEN),
        "clock stepped": Fault(clock_stepped, DONE),
        "hostile raw file": Fault(hostile, KILLED),
        "hostile inventory": Fault(hostile_inventory, {1: r"dublin|oregon", 2: r"hosts\.yml"}),
    }
    | {
        f"driver of rented hosts killed ({cloud})": Fault(
            rented(cloud), {0: r" 0 are left, and 0 of \d+ of others are touched"}
        )
        for cloud in ("aws", "gcp", "azure")
    }
    | _signals((INTERRUPT, KILL), "the driver", lambda number: DONE | AFTER[number], SSH)
    | _signals((KILL,), "a tool", lambda number: FAILED | OPEN, SSH)
    | _signals((KILL,), "a supervisor", lambda number: FAILED | OPEN | LOST, SSH)
    | _signals((KILL,), "an SSH client", lambda number: FAILED | OPEN | LOST, SSH)
    | {
        f"{what} ({SSH})": Fault(act, FAILED | OPEN | LOST, SSH)
        for what, act in {
            "login ended": on_a_host(_sessions_killed),
            "host cut off": on_a_host(_cut_off),
            "host rebooted": on_a_host(_rebooted),
            "hosts hang": paused("supervisors", LOST_S),
        }.items()
    }
    | _signals((END, KILL), "a broker", lambda number: DONE | OPEN | BROKER, "a broker")
    | _signals((INTERRUPT, KILL), "the driver", lambda number: DONE | AFTER[number], THREE)
    | _signals((END, KILL), "a broker", lambda number: FAILED | OPEN | BROKER | FAILED_PAGE, THREE)
    | _signals((KILL,), "the helper", lambda number: DONE | LAB_ENDED | FAILED_PAGE, THREE)
    | _signals((KILL,), "a watcher", lambda number: FAILED | OPEN | FAILED_PAGE, THREE)
    | _signals((KILL,), "a client", lambda number: FAILED | OPEN | FAILED_PAGE, THREE)
    | {f"relay paused ({THREE})": Fault(paused("the helper"), FAILED | OPEN | LAB_ENDED | FAILED_PAGE, THREE)}
    | _signals((KILL,), "the driver", lambda number: DONE | AFTER[number], MIRROR)
    | _signals((KILL,), "MirrorMaker", lambda number: FAILED | OPEN | BROKER, MIRROR)
)
