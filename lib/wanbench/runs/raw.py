"""Raw files of a run: bytes as a tool wrote them, hashed while written."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from wanbench.errors import ParameterError, RawDataError
from wanbench.files import naming

_CHECKOUT = str(Path(__file__).resolve().parents[3])
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class RawFile:
    """
    A raw file and the command that wrote it.

    `path` is relative to the run folder, with '/'. `returncode` is None for what no command printed. In `command` the
    checkout's folder is '.', so that a run does not reveal its machine's paths.
    """

    path: str
    experiment: str
    sha256: str
    bytes: int
    command: tuple[str, ...]
    returncode: int | None
    started_at_utc: str
    ended_at_utc: str

    def as_dict(self) -> dict:
        return {**dataclasses.asdict(self), "command": list(self.command)}


def write_raw(
    folder: Path,
    experiment: str,
    name: str,
    content: bytes,
    *,
    command: Sequence[str] = (),
    returncode: int | None = None,
    started_at_utc: str,
    ended_at_utc: str,
) -> RawFile:
    """
    Write `content` to <run folder>/<experiment>/<name>, whole or not at all.

    ParameterError if `experiment` or `name` is not a plain file name, or the file is there already.
    """
    for part in (experiment, name):
        if not _PART.fullmatch(part):
            raise ParameterError(f"{part!r} is not a plain file name of letters, digits, '.', '_' and '-'.")
    target = Path(folder) / experiment / name
    if target.exists():
        raise ParameterError(f"{target} is there already; raw files are never written over.")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{name}.unfinished")
    with naming(target), unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, target)
    return RawFile(
        path=f"{experiment}/{name}",
        experiment=experiment,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        command=tuple(word.replace(_CHECKOUT, ".") for word in command),
        returncode=returncode,
        started_at_utc=started_at_utc,
        ended_at_utc=ended_at_utc,
    )


def sha256(path: Path) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: Path, path: object, journal: Path, line_number: int | None) -> str:
    """The relative path of a raw file if it stays inside the run folder; RawDataError otherwise."""
    well = isinstance(path, str) and path and not re.search(r"[\\\0\ud800-\udfff]", path)
    well = well and not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
    if not well or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise RawDataError(journal, line_number, path, "a relative path inside the run folder")
    return path
