"""Cell tags for publishing; in JupyterLab they are set in the property inspector."""

from __future__ import annotations

from nbformat import NotebookNode

CHECK = "check"
"""On the title: the page checks the lab or the pipeline; the front page lists it after the studies, folded."""
INTRODUCTION = "introduction"
"""On the title: the page introduces the others."""
RECORDED = "recorded"
"""On the title: a report of all pages replays the study's recording; only a report by name measures it."""
COVER = "cover"
"""On a code cell: its figure is the one on the front page; default: the page's first figure."""
OPTIONAL = "optional"
"""On a heading: its section is left out, with the reason, if one of its cells raises MissingDataError."""

LEFT_OUT = "wanbench-left-out"
"""In the metadata of a cell of an executed notebook: why its section is left out, at its heading; "" below it."""


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
