"""What every experiment shares: keeping what a command printed, whatever became of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import CommandError
from ..labs.base import Completed, Host
from ..runs import RawFile, write_raw

PROCESS_S = 0.02
"""Start and end of a command on a local lab; measured with `wanbench.experiments.iperf3.HANDSHAKE_RTTS`."""

_FRAME = re.compile(r"\s*(at [\w.$/]+|\.\.\. \d+ (more|common))")


class ExperimentError(CommandError):
    """An experiment failed; `files` are the raw files that it left."""

    def __init__(self, reason: str, files: Sequence[RawFile] = ()):
        super().__init__(reason)
        self.files = list(files)

    def __reduce__(self):
        return ExperimentError, (str(self), self.files)


def keep(folder: Path, experiment: str, stem: str, extension: str, done: Completed) -> list[RawFile]:
    """
    Write stdout to <experiment>/<stem>.<extension>, and stderr, if there is any, to
    <experiment>/<stem>.stderr.txt (<stem>.server.stderr.txt where the extension is "server.txt").
    """
    about = {
        "command": done.command,
        "returncode": done.returncode,
        "started_at_utc": done.started_at_utc,
        "ended_at_utc": done.ended_at_utc,
    }
    files = [write_raw(folder, experiment, f"{stem}.{extension}", done.stdout, **about)]
    if done.stderr:
        side = extension.rpartition(".")[0]
        name = f"{stem}.{side}.stderr.txt" if side else f"{stem}.stderr.txt"
        files.append(write_raw(folder, experiment, name, done.stderr, **about))
    return files


def run_to_end(host: Host, command: Sequence[str], timeout_s: float) -> tuple[Completed, str | None]:
    """
    Run a command; return what it printed, and None or the reason why it was stopped.

    Unlike `Host.run` this also returns what was printed before the time ran out.
    """
    process = host.start(command)
    try:
        return process.wait(timeout_s), None
    except CommandError:
        done = process.stop()
        return done, f"{command[0]} on {host.name} did not end within {timeout_s:g} s and was stopped"
    except BaseException:
        process.stop()
        raise


def last_words(done: Completed) -> str:
    """
    The last line that a command printed, on stderr or else stdout, shortened; of Java's stack traces what is no frame.
    """
    for stream in (done.stderr, done.stdout):
        lines = stream[-20_000:].decode("utf-8", "replace").splitlines()
        said = [line.strip() for line in lines if line.strip() and not _FRAME.match(line)]
        if said:
            return said[-1][:300]
    return "it printed nothing"
