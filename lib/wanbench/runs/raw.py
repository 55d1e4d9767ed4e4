"""Write the raw files of a run, which hold what tools printed, and hash them."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from wanbench.errors import ParameterError, RawDataError
from wanbench.files import naming

_CHECKOUT = str(Path(__file__).resolve().parents[3])
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class RawFile:
    """
    A raw file and the command whose output it holds.

    `path` is relative to the run folder, with '/'. `returncode` is None if no command wrote the content. In `command`
    the checkout's folder is replaced by '.', so that a run does not reveal its machine's paths.
    """

    path: str
    experiment: str
    sha256: str
    bytes: int
    command: tuple[str, ...]
    returncode: int | None
    started_at_utc: str
    ended_at_utc: str

    def as_dict(self) -> dict[str, Any]:
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
    Write `content` atomically to <folder>/<experiment>/<name>; return its `RawFile`, which records the other arguments.

    Raise ParameterError if `experiment` or `name` is not a plain file name, or if the file exists.
    """
    for part in (experiment, name):
        if not _PART.fullmatch(part):
            raise ParameterError(f"{part!r} is not a plain file name of letters, digits, '.', '_' and '-'.")
    target = Path(folder) / experiment / name
    if target.exists():
        raise ParameterError(f"{target} exists already; raw files are never overwritten.")
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


def sha256(path: str | Path) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def inside(folder: Path, path: object, source: Path, line_number: int | None) -> str:
    """
    Return `path` if it is relative and inside the run folder; otherwise raise RawDataError, which names the line
    `line_number` of the file `source`.
    """
    if isinstance(path, str) and path and not re.search(r"[\\\0\ud800-\udfff]", path):
        parts = PurePosixPath(path).parts
        is_plain = not path.startswith("/") and ".." not in parts
        links = (os.path.islink(os.path.join(folder, *parts[: k + 1])) for k in range(len(parts)))
        if is_plain and (not any(links) or (folder / path).resolve().is_relative_to(folder.resolve())):
            return path
    raise RawDataError(source, line_number, path, "a relative path inside the run folder")
