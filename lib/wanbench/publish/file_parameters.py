"""Parameters that name files, relative to where the command was typed, while notebooks run in their own folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from wanbench.errors import ParameterError

FILES = ("workload", "driver", "inventory")
"""Parameters whose values are paths of files, as are those of every name that ends in `ENDING`, at any depth."""
ENDING = "_file"


def located(
    given: Mapping[str, object],
    declared: Collection[str],
    notebook: Path,
    starts: Sequence[Path],
    top: Path,
    source: str = "",
) -> dict[str, object]:
    """
    The parameters, with paths converted to the notebook's folder.

    A relative path starts in the first of `starts` that has the file. Inside the checkout, paths become relative to the
    notebook's folder, so that a page is the same on every machine; others become absolute.

    Parameters
    ----------
    given : mapping
        Parameters by name. An empty path or None stays.
    declared : collection of str
        The notebook's parameters; what it does not have is left to `check_parameters`.
    notebook : Path
    starts : sequence of Path
        The folder in which the command was typed comes first.
    top : Path
        The checkout.
    source : str
        Where the values come from; named in messages.

    Raises
    ------
    ParameterError
        There is no such file; names the parameter and every place that was tried.
    """

    def find(name: str, text: str) -> str:
        tried = [Path(start, os.path.expanduser(text)).resolve() for start in starts]
        found = next((path for path in tried if path.is_file()), None)
        if found is None:
            places = " or ".join(map(str, dict.fromkeys(tried)))
            hint = "" if Path(text).is_absolute() else "; relative paths begin where the command was typed"
            raise ParameterError(
                f"{f'{source}: ' if source else ''}parameter {name!r} is {text!r}, and there is no file {places}{hint}."
            )
        inside = found.is_relative_to(top.resolve())
        return os.path.relpath(found, notebook.parent.resolve()) if inside else str(found)

    return {name: _each_path(name, value, find) if name in declared else value for name, value in given.items()}


def contents(given: Mapping[str, object], notebook: Path) -> list[str]:
    """A hash of each file that parameters name (see `located`), by which a change of its content is seen."""
    hashes = []

    def add(name: str, text: str) -> str:
        path = notebook.parent / text
        hashes.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else f"no {name}")
        return text

    for name, value in given.items():
        _each_path(name, value, add)
    return hashes


def _each_path(name: str, value: object, change: Callable[[str, str], str]) -> object:
    """A value with its paths changed: text, or each text of a list, under a name that stands for files."""
    if isinstance(value, Mapping):
        return {key: _each_path(str(key), one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_path(name, one, change) for one in value]
    is_path = (name in FILES or name.endswith(ENDING)) and isinstance(value, str) and value
    return change(name, value) if is_path else value
