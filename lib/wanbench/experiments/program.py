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
        target = f"{host.scratch}/{path.name}"
        unfinished = f"{target}.{uuid.uuid4().hex}"
        host.put(path, unfinished)
        # In one step: another that starts the same program now must not meet half of it.
        host.run(["mv", "-f", unfinished, target], timeout_s=_TIMEOUT_S)
    here = host.run(["test", "-x", sys.executable], timeout_s=_TIMEOUT_S, ok=None).returncode == 0
    return [sys.executable if here else "python3", f"{host.scratch}/{program.name}"]
