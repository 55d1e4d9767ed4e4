"""What this machine lacks for measuring and publishing, and how to get it."""

import csv
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from .errors import LabError

MEASURING, KAFKA, FIGURES = "measuring", "Kafka", "static figures"
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True)
class Check:
    """
    One program or permission that measuring or publishing needs.

    `found` says what was found, None if missing; `remedy` is what to do then, a line per system.
    """

    name: str
    needed_for: str
    found: str | None
    remedy: tuple[str, ...] = ()

    def __str__(self) -> str:
        first = f"{'ok     ' if self.found else 'MISSING'}  {self.name:<10} for {self.needed_for}"
        lines = [f"{first}: {self.found}"] if self.found else [first, *(f"         {line}" for line in self.remedy)]
        return "\n".join(lines)


def programs() -> list[dict[str, str]]:
    """The system programs wanbench calls, one row each, as in `programs.csv`."""
    text = files(__package__).joinpath("programs.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def find_program(names: str) -> str | None:
    """The path of the first of these programs (names separated by spaces) that is installed; None if none is."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    return next((found for name in names.split() if (found := shutil.which(name, path=path))), None)


def checks() -> list[Check]:
    """All checks."""
    python = sys.version.split()[0]
    return [
        Check("Python", "everything", python if sys.version_info >= (3, 11) else None, ("needs 3.11 or newer",)),
        *(_program(row) for row in programs()),
        _local_lab(),
        _kafka(),
    ]


def checks_of_hosts(inventory: Path) -> list[Check]:
    """What each host of an inventory has and lacks; an unreachable one lacks everything, with the reason."""
    from .measure.labs.ssh import read_inventory

    entries = read_inventory(inventory).entries
    with ThreadPoolExecutor(max_workers=32) as threads:
        return [check for some in threads.map(_checks_of, [entry.host for entry in entries]) for check in some]


def _checks_of(host) -> list[Check]:
    from .measure.labs.ssh import lab as about

    checks, everything = [], f"everything in {host.region}"
    try:
        with host:
            python = host.connection.hello["python"]
            facts = about.facts_of(host, python)
    except LabError as error:
        return [Check(f"{host.name}: SSH", everything, None, (str(error),))]
    checks.append(Check(f"{host.name}: SSH", everything, f"Linux {facts['kernel']}, Python {facts['python']}"))
    own = "the host's own" if facts["has_address"] else None
    remedy = "the host itself must have it, so that servers can listen on it"
    checks.append(Check(f"{host.name}: {host.address}", about.PATHS, own, (remedy,)))
    lacking = [name for purpose in (about.PATHS, about.KAFKA) for name in about.lacking(facts, purpose)]
    for name, purpose in about.NEEDS.items():
        there = None if name in lacking else facts["tools"][name]
        checks.append(Check(f"{host.name}: {name}", purpose, there, (about.install_command(facts, [name]),)))
    for name, package in about.MODULES.items():
        there = f"module {name}" if name in facts["modules"] else None
        remedy = about.module_command(python, [name])
        checks.append(Check(f"{host.name}: {package}", about.KAFKA, there, (remedy,)))
    return checks


def _program(row: dict[str, str]) -> Check:
    from .publish.figures import browser

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
    able = "can run here; a relay in user space makes its links, the same on every kernel"
    return Check("local lab", MEASURING, None if reason else able, remedy)


def _kafka() -> Check:
    from .folders import kafka_jars
    from .measure.kafka import unavailable

    reason = unavailable()
    able = None if reason else f"can run here, with the jars in {kafka_jars()}"
    return Check("Kafka", KAFKA, able, (f"{reason}",) if reason else ())
