"""
The parameters of a notebook: its `parameters` cell, and the check of given values.

papermill only warns of unknown names and ignores types, so a misspelt parameter would measure for an hour with the
default. Here both are errors before anything runs.
"""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat

from wanbench.errors import ParameterError
from wanbench.plain_yaml import parse_yaml

from .kinds import Kind, Misfit, kind_of_annotation, kind_of_value
from .notebooks import read_notebook

TAG = "parameters"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook: name, default, allowed kind, and comment."""

    name: str
    default: object
    kind: Kind
    comment: str


def declared_parameters(notebook: nbformat.NotebookNode, name: str) -> dict[str, Parameter]:
    """
    The parameters in the cell tagged `parameters`, by name, in order.

    Parameters
    ----------
    notebook : NotebookNode
    name : str
        How error messages call the notebook, such as its path.

    Raises
    ------
    ParameterError
        Two cells carry the tag, or the cell holds anything but assignments of plain literals, or a default
        that its annotation does not allow, or a default of None that no annotation explains.
    """
    cells = [
        cell for cell in notebook.cells if cell.cell_type == "code" and TAG in cell.get("metadata", {}).get("tags", ())
    ]
    if len(cells) > 1:
        raise ParameterError(f"{name}: {len(cells)} cells are tagged {TAG!r}; one is allowed.")
    return _parse(cells[0].source, name) if cells else {}


def check_parameters(
    notebook: nbformat.NotebookNode, given: Mapping[str, object], name: str, source: str = ""
) -> dict[str, object]:
    """
    Check given values against the notebook; converts ints to float if required.

    Parameters
    ----------
    notebook : NotebookNode
    given : mapping
        Values by parameter name; parameters left out keep their default.
    name : str
        How error messages call the notebook.
    source : str
        Where the values come from, such as the path of a preset; named in messages.

    Raises
    ------
    ParameterError
        A name is unknown or a value of the wrong kind. All faults are listed, with what is allowed.
    """
    declared = declared_parameters(notebook, name)
    faults, accepted = [], {}
    for key, value in given.items():
        if key not in declared:
            near = difflib.get_close_matches(str(key), declared, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            faults.append(f"unknown parameter {key!r}{hint}; it has {', '.join(declared) or 'no parameters'}")
            continue
        try:
            accepted[key] = declared[key].kind.accept(value)
        except Misfit as misfit:
            faults.append(f"parameter {key!r} {misfit}")
    if faults:
        where = f"{source} for {name}" if source else name
        raise ParameterError(f"{where}: " + "; ".join(faults) + ".")
    return accepted


def check_notebook(path: Path, given: Mapping[str, object], source: str = "") -> dict[str, object]:
    """As `check_parameters`, for a notebook file."""
    return check_parameters(read_notebook(path), given, path.name, source)


def parse_assignment(text: str, declared: Mapping[str, Parameter]) -> tuple[str, object]:
    """
    Parse "name=value" from a command line: the value is YAML, or plain text for text parameters.

    >>> count = Parameter("count", 20, Kind("int"), "")
    >>> parse_assignment("count=5", {"count": count})
    ('count', 5)
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ParameterError(f"{text!r} is not a parameter; write name=value.")
    if name in declared and declared[name].kind == Kind("str"):
        return name, value
    return name, parse_yaml(value, f"the value of {name!r}")


def _parse(source: str, name: str) -> dict[str, Parameter]:
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(
            f"{name}: the parameters cell is not valid Python: {error.msg}, line {error.lineno}."
        ) from None
    comments = _comments(source)
    parameters: dict[str, Parameter] = {}
    for statement in statements:
        place = f"{name}: line {statement.lineno} of the parameters cell"
        match statement:
            case ast.Assign(targets=[ast.Name(id=key)], value=value):
                annotation = None
            case ast.AnnAssign(target=ast.Name(id=key), annotation=annotation, value=value) if value is not None:
                pass
            case _:
                raise ParameterError(f"{place} is not an assignment of a plain value to a name.")
        if key in parameters:
            raise ParameterError(f"{place} assigns {key!r} for the second time.")
        try:
            default = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError):
            raise ParameterError(f"{place}: {ast.unparse(value)!r} is computed; write a plain value.") from None
        if annotation is None and default is None:
            raise ParameterError(f"{place}: {key!r} is None; give its other type, as in `{key}: int | None = None`.")
        try:
            kind = kind_of_value(default) if annotation is None else kind_of_annotation(annotation)
            kind.accept(default)
        except Misfit as misfit:
            raise ParameterError(f"{place}: {key!r}: {misfit}.") from None
        parameters[key] = Parameter(key, default, kind, _comment_for(statement, comments))
    return parameters


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """Comment text by line number, and whether it is alone on its line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: (token.string.lstrip("# ").rstrip(), token.line.lstrip().startswith("#"))
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _comment_for(statement: ast.stmt, comments: dict[int, tuple[str, bool]]) -> str:
    """The comment at the end of a statement's first or last line; else one alone on the line above."""
    for line in (statement.lineno, statement.end_lineno):
        if line in comments:
            return comments[line][0]
    above = comments.get(statement.lineno - 1)
    return above[0] if above and above[1] else ""
