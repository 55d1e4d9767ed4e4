"""Find programs and permissions that are missing for measuring and publishing, and say how to get them."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from .errors import LabError

if TYPE_CHECKING:
    from .measure.labs.ssh import SshHost

MEASURING, KAFKA, FIGURES = "measuring", "Kafka", "static figures"
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Check:
    """
    One program or permission that measuring or publishing needs.

    `present` is the path or version, None if missing; `remedy` says how to get it, one line per system.
    """

    name: str
    needed_for: str
    present: str | None
    remedy: tuple[str, ...] = ()

    def __str__(self) -> str:
        line = f"{self.name:<10} for {self.needed_for}"
        if self.present:
            return f"ok       {line}: {self.present}"
        return "\n         ".join([f"{'not here' if self.is_optional else 'MISSING '} {line}", *self.remedy])

    @property
    def is_optional(self) -> bool:
        """Return whether wanbench works if this is missing, except for what `needed_for` says."""
        return self.needed_for.endswith("(optional)")


def programs() -> list[dict[str, str]]:
    """Return the rows of `programs.csv`: the system programs that wanbench calls."""
    text = files("wanbench").joinpath("programs.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def find_program(names: str) -> str | None:
    """
    Return the path of the first installed program among these names (separated by spaces); None if none of them is
    installed.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    return next(filter(None, (shutil.which(name, path=path) for name in names.split())), None)


def checks() -> list[Check]:
    """Check this machine for everything that any command needs."""
    python = sys.version.split()[0]
    return [
        Check("Python", "everything", python if sys.version_info >= (3, 11) else None, ("needs 3.11 or newer",)),
        *(_program(row) for row in programs()),
        _local_lab(),
        _kafka(),
        _disk_limits(),
    ]


def checks_of_hosts(inventory: Path) -> list[Check]:
    """Check all hosts of an inventory; a host that cannot be reached has one failed check, which gives the reason."""
    from .measure.labs.ssh import read_inventory

    entries = read_inventory(inventory).entries
    with ThreadPoolExecutor(max_workers=32) as threads:
        return [check for some in threads.map(_checks_of, [entry.host for entry in entries]) for check in some]


def _checks_of(host: "SshHost") -> list[Check]:
    from .measure.labs.ssh import lab as about

    checks, everything = [], f"everything in {host.region}"
    try:
        with host:
            python = host.connection.hello["python"]
            facts = about.facts_of(host, python)
    except LabError as error:
        return [Check(f"{host.name}: SSH", everything, None, (str(error),))]
    checks.append(Check(f"{host.name}: SSH", everything, f"Linux {facts['kernel']}, Python {facts['python']}"))
    own = "an address of the host" if facts["has_address"] else None
    remedy = "servers listen on this address, so it must be an address of the host itself"
    checks.append(Check(f"{host.name}: {host.address}", about.PATHS, own, (remedy,)))
    lacking = [name for purpose in (about.PATHS, about.KAFKA) for name in about.lacking(facts, purpose)]
    for name, purpose in about.NEEDS.items():
        present = None if name in lacking else facts["tools"][name]
        checks.append(Check(f"{host.name}: {name}", purpose, present, (about.install_command(facts, [name]),)))
    for name, package in about.MODULES.items():
        present = f"module {name}" if name in facts["modules"] else None
        remedy = about.module_command(python, [name])
        checks.append(Check(f"{host.name}: {package}", about.KAFKA, present, (remedy,)))
    return checks


def _program(row: dict[str, str]) -> Check:
    from .publish.pictures import browser

    path = browser() if row["needed_for"] == FIGURES else find_program(row["program"])
    remedy = (
        f"Debian, Ubuntu:  apt-get install {row['debian']}",
        f"Fedora:          dnf install {row['fedora']}",
        f"macOS:           {row['macos']}",
    )
    return Check(row["program"].split()[0], row["needed_for"], path, remedy)


def _local_lab() -> Check:
    from .measure.labs.local import LocalLab

    reason = LocalLab.unavailable()
    remedy = (f"{reason}", "`wanbench report` replays the committed recording instead.") if reason else ()
    able = "can run here; its links are emulated in user space, the same on every kernel"
    return Check("local lab", MEASURING, None if reason else able, remedy)


def _kafka() -> Check:
    from .folders import kafka_jars
    from .measure.kafka import unavailable

    reason = unavailable()
    able = None if reason else f"can run here, with the jars in {kafka_jars()}"
    return Check("Kafka", KAFKA, able, (f"{reason}",) if reason else ())


def _disk_limits() -> Check:
    """Limit the disk of the folder for temporary files for a moment, as page 09 does, to see whether that works."""
    from .measure.kafka.programs.process_limit import disk_limit, group_for

    folder, able, group = gettempdir(), None, None
    with subprocess.Popen(["sleep", "60"]) as limited:
        try:
            limit = disk_limit(1e9, folder)
            device, reason = limit.about["device"], limit.refusal
            if group := group_for(limited.pid, limit):
                able = f"{Path('/sys/dev/block', device).resolve().name} ({device}, of {folder}), by {group.way}"
        except OSError as error:
            reason = str(error)
        finally:
            limited.kill()
    if group:
        group.remove()
    return Check("disk limit", "slow disks of brokers (optional)", able, (reason,))


def why_not_here(needs_kafka: bool) -> str | None:
    """Return why this machine cannot measure a notebook, with Kafka if `needs_kafka`; None if it can."""
    from .measure import kafka
    from .measure.labs.local import LocalLab

    lacking = LocalLab.unavailable() or (kafka.unavailable() if needs_kafka else None)
    return f"This machine cannot measure this page: {lacking}" if lacking else None


def unusable_clouds(labs: Iterable[str | None]) -> dict[str, str]:
    """
    Find the clouds in `labs`, values of the parameter `lab` such as "aws+gcp", that this machine cannot use; return the
    reasons by cloud.
    """
    from .measure.labs import CLOUDS

    wanted = {cloud for lab in labs for cloud in str(lab).split("+")} & set(CLOUDS)
    return {cloud: reason for cloud in sorted(wanted) if (reason := CLOUDS[cloud].unusable())}
