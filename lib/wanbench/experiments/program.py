"""Our own programs on a host: put there as files, and run by the Python there."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from ..labs.base import Host

_TIMEOUT_S = 30.0


def program_words(host: Host, program: Path, *beside: Path) -> list[str]:
    """
    The first words of a command that runs a program file on a host, where it and the files beside it are put.

    This Python runs it where the host has it, as on this machine, else the first `python3` there.
    """
    for path in (program, *beside):
        put_whole(host, path, f"{host.scratch}/{path.name}")
    here = host.run(["test", "-x", sys.executable], timeout_s=_TIMEOUT_S, ok=None).returncode == 0
    return [sys.executable if here else "python3", f"{host.scratch}/{program.name}"]


def put_whole(host: Host, source: Path, target: str) -> None:
    """Put a file on a host in one step, so that whoever reads `target` meanwhile does not meet half of it."""
    unfinished = f"{target}.{uuid.uuid4().hex}"
    host.put(source, unfinished)
    host.run(["mv", "-f", unfinished, target], timeout_s=_TIMEOUT_S)
