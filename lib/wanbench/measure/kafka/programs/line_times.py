"""
Run a command, pass on its output, and record when each line was printed, by this host's clock.

``python line_times.py <file> <command> <argument>...`` writes Unix times in seconds to the file, one per line: the
start of the command, then the end of each output line. The file grows with the output, so it survives a kill. Imports
only the standard library, because it is copied to hosts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import IO

CHUNK_BYTES = 1 << 16


def main(arguments: list[str]) -> int:
    """Run the command that follows the file name; return its exit status, or 128 + n if signal n ended it."""
    path, *command = arguments
    with open(path, "wb", buffering=0) as times:
        _write(times, time.time())
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert child.stdout
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda which, _: child.poll() is None and child.send_signal(which))
        unfinished = False
        while chunk := os.read(child.stdout.fileno(), CHUNK_BYTES):
            at_s = time.time()
            _pass_on(chunk)
            _write(times, at_s, chunk.count(b"\n"))
            unfinished = not chunk.endswith(b"\n")
        _write(times, time.time(), int(unfinished))
    status = child.wait()
    return status if status >= 0 else 128 - status


def _write(times: IO[bytes], at_s: float, n: int = 1) -> None:
    times.write(b"%.6f\n" % at_s * n)


def _pass_on(chunk: bytes) -> None:
    while chunk:
        chunk = chunk[os.write(sys.stdout.fileno(), chunk) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
