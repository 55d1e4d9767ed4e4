"""Files on a host that only their owner can read."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

from wanbench.measure.labs.base import Host

_TIMEOUT_S = 30.0


def put_private(host: Host, name: str, content: str | bytes) -> str:
    """
    Write a file of mode 0600 into the host's scratch folder and return its path there.

    Its mode is set before its content, it appears atomically, and its content is never part of a command. An existing
    file is replaced.
    """
    path = f"{host.scratch}/{name}"
    unfinished = f"{path}.{uuid.uuid4().hex[:8]}"
    host.run(["install", "-m", "600", "/dev/null", unfinished], timeout_s=_TIMEOUT_S)
    number, local = tempfile.mkstemp(prefix="wanbench-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        host.put(Path(local), unfinished)
    finally:
        os.unlink(local)
    host.run(["mv", "-f", "--", unfinished, path], timeout_s=_TIMEOUT_S)
    return path
