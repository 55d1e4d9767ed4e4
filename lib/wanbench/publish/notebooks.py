"""Notebooks: find one by its name, read it, and the tags of its cells (in JupyterLab: the property inspector)."""

import difflib
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from wanbench.errors import ParameterError, RawDataError


def notebook_paths(root: Path) -> list[Path]:
    """All notebooks of a checkout, in reading order (names begin with a number)."""
    return sorted(path for path in (root / "notebooks").glob("*.ipynb") if not path.name.startswith("."))


def find_notebook(name: str, root: Path) -> Path:
    """
    Find a notebook by path, full name ("02-intercloud-throughput"), its start ("02"), or any unique part ("private").

    ParameterError if no notebook, or more than one, is meant; the message lists those there are.
    """
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    paths = {path.stem: path for path in notebook_paths(root)}
    stem = Path(name).stem if name.endswith(".ipynb") else name
    if stem in paths:
        return paths[stem]
    starting = [path for name, path in paths.items() if stem and name.startswith(stem)]
    meant = starting or [path for name, path in paths.items() if stem and stem in name]
    if len(meant) == 1:
        return meant[0]
    near = difflib.get_close_matches(stem, paths, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    what = "more than one notebook matches" if meant else "no notebook matches"
    raise ParameterError(f"{what} {name!r}{hint}; there are: {', '.join(paths) or 'none'}.")


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook in format 4; RawDataError if the file is not one."""
    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise ParameterError(f"{path}: the notebook cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # nbformat raises its own, jsonschema's and built-in errors for bad content
        raise RawDataError(path, None, f"{type(error).__name__}: {error}", "a Jupyter notebook of format 4") from error


# On the title: the page checks the lab or the pipeline; the front page lists it after the studies, folded.
CHECK = "check"
INTRODUCTION = "introduction"  # On the title: the page introduces the others.
# On the title: a report of all pages replays the study's recording; only a report by name measures it.
RECORDED = "recorded"
COVER = "cover"  # On a code cell: its figure is the one on the front page; default: the page's first figure.
# On a heading: its section is left out, with the reason, if one of its cells raises MissingDataError.
OPTIONAL = "optional"

# In the metadata of a cell of an executed notebook: why its section is left out, at its heading; "" below it.
LEFT_OUT = "wanbench-left-out"


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", ()))


def optional_section(notebook: NotebookNode, index: int) -> range | None:
    """
    The cells of a cell's innermost optional section, its heading first; None if it is in none.

    A section ends where the next heading of its level or a higher one begins.
    """
    for start in range(index, -1, -1):
        if OPTIONAL in tags(notebook.cells[start]):
            level = _level(notebook.cells[start])
            later = range(start + 1, len(notebook.cells))
            end = next((k for k in later if 0 < _level(notebook.cells[k]) <= level), len(notebook.cells))
            if index < end:
                return range(start, end)
    return None


def leave_out(notebook: NotebookNode, section: range, reason: str) -> None:
    """Mark a section as left out: the page lists its heading, with the reason, at its end."""
    notebook.cells[section[0]].metadata[LEFT_OUT] = reason.strip() or "its data are missing."
    for k in section[1:]:
        notebook.cells[k].metadata[LEFT_OUT] = ""
        if notebook.cells[k].cell_type == "code":
            notebook.cells[k].outputs = []


def _level(cell: NotebookNode) -> int:
    """The level of a heading, by its number of #; 0 for any other cell."""
    text = cell.source.lstrip() if cell.cell_type == "markdown" else ""
    return len(text) - len(text.lstrip("#"))


def title_tags(notebook: NotebookNode) -> list[str]:
    """The tags of a notebook's title, its first cell of text."""
    title = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    return [] if title is None else tags(title)


def kind(notebook: NotebookNode) -> str:
    """The kind of a notebook, by its title's tag: "check", "introduction", or else "study"."""
    return next((tag for tag in (CHECK, INTRODUCTION) if tag in title_tags(notebook)), "study")
