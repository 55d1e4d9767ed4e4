"""Find and read notebooks, and the tags of their cells (JupyterLab shows tags in its property inspector)."""

import difflib
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from wanbench.errors import ParameterError, RawDataError


def notebook_paths(root: Path) -> list[Path]:
    """Return the notebooks of a checkout in reading order, which is the order of their file names."""
    return sorted(path for path in (root / "notebooks").glob("*.ipynb") if not path.name.startswith("."))


def find_notebook(name: str, root: Path) -> Path:
    """
    Find a notebook by its path, its name ("02-intercloud-throughput"), or the start or any part of its name ("02").

    Raise ParameterError, which lists all notebooks, unless exactly one matches.
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
    what = "more than one notebook matches" if meant else "no notebook matches"
    message = f"{what} {name!r}{did_you_mean(stem, paths)}; the notebooks are: {', '.join(paths) or 'none'}."
    raise ParameterError(message)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean 'a'?)" with the name that is most similar to `name`, or "" if none is similar."""
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook of format 4. Raise ParameterError if it cannot be read, RawDataError if it is no notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise ParameterError(f"{path}: the notebook cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # nbformat raises its own, jsonschema's and built-in errors for bad content
        raise RawDataError(path, None, f"{type(error).__name__}: {error}", "a Jupyter notebook of format 4") from error


# Tag of a title: the page checks the lab or the pipeline. The front page lists it after the studies, folded.
CHECK = "check"
LEDGER = "ledger"  # On the title: the page collects the claims of all others; it is made last.
INTRODUCTION = "introduction"  # Tag of a title: the page introduces the others.
# Tag of a title: `wanbench report` replays the committed recording; only `wanbench report NAME` measures.
RECORDED = "recorded"
COVER = "cover"  # Tag of a code cell whose figure the front page shows; without it, the page's first figure.
# Tag of a heading: the section is left out, with the reason, if one of its cells raises MissingDataError.
OPTIONAL = "optional"
# On the title: the preset `quick` measures too little to decide the question, and the page says so.
DEMONSTRATION = "demonstration"
# On a heading: the page shows its section folded, below the article.
APPENDIX = "appendix"

# A key in the metadata of executed cells whose section was left out: the reason at the heading, "" at other cells.
LEFT_OUT = "wanbench-left-out"


def tags(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", ()))


def optional_section(notebook: NotebookNode, index: int) -> range | None:
    """
    Return the indices of the innermost optional section around the cell `index`; None if there is none.

    The first index is the heading's. A section ends before the next heading of the same or a higher level.
    """
    for start in range(index, -1, -1):
        if OPTIONAL in tags(notebook.cells[start]):
            level = heading_level(notebook.cells[start])
            later = range(start + 1, len(notebook.cells))
            end = next((k for k in later if 0 < heading_level(notebook.cells[k]) <= level), len(notebook.cells))
            if index < end:
                return range(start, end)
    return None


def leave_out(notebook: NotebookNode, section: range, reason: str) -> None:
    """Mark a section as left out, and drop its output. The end of the page then lists its heading and the reason."""
    notebook.cells[section[0]].metadata[LEFT_OUT] = reason.strip() or "its data are missing."
    for k in section[1:]:
        notebook.cells[k].metadata[LEFT_OUT] = ""
        if notebook.cells[k].cell_type == "code":
            notebook.cells[k].outputs = []


def heading_level(cell: NotebookNode) -> int:
    """Return the level of a heading (1 for "#"); 0 for any other cell."""
    text = cell.source.lstrip() if cell.cell_type == "markdown" else ""
    return len(text) - len(text.lstrip("#"))


def title_tags(notebook: NotebookNode) -> list[str]:
    """Return the tags of a notebook's title, which is its first Markdown cell."""
    title = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    return [] if title is None else tags(title)


def title(notebook: NotebookNode) -> str:
    """Return the text of a notebook's title; "" if it has none."""
    text = next((cell.source for cell in notebook.cells if cell.cell_type == "markdown"), "")
    return text.strip().partition("\n")[0].lstrip("# ")


def kind(notebook: NotebookNode) -> str:
    """Return the kind of a notebook: the tag of its title, "check", "introduction" or "ledger", or else "study"."""
    return next((tag for tag in (CHECK, INTRODUCTION, LEDGER) if tag in title_tags(notebook)), "study")
