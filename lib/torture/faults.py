"""
The faults, by kind: each is a function that is given a started study and a random generator, and does harm.

The flag beside a fault says whether the study measures on a small disk of its own.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .watched import NotPossible, Study, is_helper, unmount

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
TARGETS = {
    "driver": lambda words: "torture.study" in words,
    "helper": is_helper,
    "tool": lambda words: Path(words[0]).name in ("ping", "iperf3"),
    "every process": lambda words: True,
}
AFTER_S = 0.4  # the longest pause between one signal and the next


def signalled(target: str, number: signal.Signals, times: int):
    """Return a fault that sends a signal one or several times to what a target names."""

    def fault(study: Study, chance: random.Random):
        study.wait(chance)
        while not (pids := study.processes(TARGETS[target])) and study.driver.poll() is None:
            time.sleep(0.02)
        if not pids:
            raise NotPossible(f"no {target} runs any more")
        for _ in range(times):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(chance.uniform(0, AFTER_S))
            pids = study.processes(TARGETS[target])

    return fault


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
    """Start a second driver on the same campaign."""
    study.wait(chance)
    study.beside = study.start(study.campaign)


def two_campaigns(study: Study, chance: random.Random):
    """Start a driver of another campaign on the same machine."""
    study.wait(chance)
    study.beside = study.start("other")


def hostile(study: Study, chance: random.Random):
    """Cut, empty or overwrite a raw file of the run while its driver is killed."""
    study.wait(chance)
    study.stop(signal.SIGKILL)
    raw = [path for path in sorted(study.data.glob("raw/*/*/*/*")) if path.is_file()]
    if not raw:
        raise NotPossible("nothing was measured yet")
    path = chance.choice(raw)
    content = path.read_bytes()
    path.write_bytes(chance.choice([b"", content[: len(content) // 2], chance.randbytes(2000), b"<script>\x00{" * 99]))
    study.damaged = path


FAULTS = {
    f"{number.name} to {target}, {('once', 'twice', 'thrice')[times - 1]}": (signalled(target, number, times), False)
    for target in TARGETS
    for number in SIGNALS
    for times in (1, 2, 3)
} | {
    "data folder removed": (removed, False),
    "disk read-only": (read_only, True),
    "disk full": (full, True),
    "two drivers on one campaign": (two_drivers, False),
    "two campaigns on one machine": (two_campaigns, False),
    "hostile raw file": (hostile, False),
}
