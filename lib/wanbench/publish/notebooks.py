"""Find a notebook by its name, and read it."""

from __future__ import annotations

import difflib
from pathlib import Path

import nbformat

from wanbench.errors import ParameterError, RawDataError


def notebook_paths(root: Path) -> list[Path]:
    """All notebooks of a checkout, in reading order (names begin with a number)."""
    return sorted(path for path in (root / "notebooks").glob("*.ipynb") if not path.name.startswith("."))


def find_notebook(name: str, root: Path) -> Path:
    """
    The notebook for a path, a full name ("02-intercloud-throughput"), its start ("02"), or any unique part ("private").

    Raises
    ------
    ParameterError
        No notebook, or more than one, is meant; the message lists those there are.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    paths = {path.stem: path for path in notebook_paths(root)}
    stem = Path(name).stem if name.endswith(".ipynb") else name
    if stem in paths:
        return paths[stem]
    starting = [path for known, path in paths.items() if stem and known.startswith(stem)]
    meant = starting or [path for known, path in paths.items() if stem and stem in known]
    if len(meant) == 1:
        return meant[0]
    near = difflib.get_close_matches(stem, paths, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    what = "more than one notebook matches" if meant else "no notebook matches"
    raise ParameterError(f"{what} {name!r}{hint}; there are: {', '.join(paths) or 'none'}.")


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """
    Read a notebook in format 4.

    Raises
    ------
    RawDataError
        The file is not a notebook.
    """
    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise ParameterError(f"{path}: the notebook cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # nbformat raises its own, jsonschema's and built-in errors for bad content
        raise RawDataError(path, None, f"{type(error).__name__}: {error}", "a Jupyter notebook of format 4") from error
