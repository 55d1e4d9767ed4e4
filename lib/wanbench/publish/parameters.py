"""
The parameters of a notebook: its `parameters` cell, the check of given values, presets, and paths of files.

papermill only warns of unknown names and ignores types, so a misspelt parameter would measure for an hour with the
default. Here both are errors before anything runs.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import os
import tokenize
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from wanbench.errors import ParameterError
from wanbench.folders import ROOT_MARK
from wanbench.plain_yaml import parse_yaml, read_yaml

from .notebooks import read_notebook

SCALARS = {"str": str, "int": int, "float": float, "bool": bool, "None": type(None)}


class Misfit(ValueError):
    """A value of the wrong kind; the message says where inside the value, and what was found."""


@dataclass(frozen=True)
class Kind:
    """
    One kind of value.

    Parameters
    ----------
    name : str
        "str", "int", "float", "bool", "None", "list", "dict", "one of" (of `parts`), "literal" or "anything".
    parts : tuple of Kind
        Elements of a list; keys and values of a dict; the alternatives of "one of".
    values : tuple
        The values allowed by a literal.
    """

    name: str
    parts: tuple[Kind, ...] = ()
    values: tuple = ()

    def __str__(self) -> str:
        match self.name:
            case "list":
                return f"list of {self.parts[0]}"
            case "dict":
                return f"dict of {self.parts[0]} to {self.parts[1]}"
            case "one of":
                return " or ".join(str(part) for part in self.parts)
            case "literal":
                return " or ".join(repr(value) for value in self.values)
        return self.name

    def accept(self, value: object, place: str = "") -> object:
        """The value, with ints converted to float if required. Misfit if it is of another kind."""
        match self.name:
            case "anything":
                return value
            case "literal":
                if any(type(value) is type(allowed) and value == allowed for allowed in self.values):
                    return value
            case "one of":
                for part in sorted(self.parts, key=lambda part: part.name == "float"):
                    try:
                        return part.accept(value, place)
                    except Misfit:
                        continue
            case "list":
                if isinstance(value, (list, tuple)):
                    return [self.parts[0].accept(element, f"{place}[{i}]") for i, element in enumerate(value)]
            case "dict":
                if isinstance(value, dict):
                    key, element = self.parts
                    return {
                        key.accept(name, f"{place} key"): element.accept(one, f"{place}[{name!r}]")
                        for name, one in value.items()
                    }
            case "float":
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    return float(value)
            case _:
                if type(value) is SCALARS[self.name]:
                    return value
        where = f" at {place}" if place else ""
        raise Misfit(f"must be {self}{where}, not {value!r} ({type(value).__name__})")


ANYTHING = Kind("anything")


def one_of(kinds) -> Kind:
    """The union of these kinds; "anything" if there are none."""
    unique = list(dict.fromkeys(kinds))
    if Kind("float") in unique and Kind("int") in unique:
        unique.remove(Kind("int"))
    if not unique:
        return ANYTHING
    return unique[0] if len(unique) == 1 else Kind("one of", tuple(unique))


def kind_of_value(value: object) -> Kind:
    """
    The kind of a default value.

    >>> str(kind_of_value([1, 2.5]))
    'list of float'
    """
    if isinstance(value, (list, tuple)):
        return Kind("list", (one_of(kind_of_value(element) for element in value),))
    if isinstance(value, dict):
        keys = one_of(kind_of_value(key) for key in value)
        return Kind("dict", (keys, one_of(kind_of_value(element) for element in value.values())))
    for name, scalar in SCALARS.items():
        if type(value) is scalar:
            return Kind(name)
    raise Misfit(f"{value!r} ({type(value).__name__}) is not a plain value")


def kind_of_annotation(node: ast.expr) -> Kind:
    """
    The kind of an annotation.

    Supported: str, int, float, bool, None, list[...], dict[..., ...], Literal[...], Optional[...] and `|`.

    >>> str(kind_of_annotation(ast.parse("list[str] | None", mode="eval").body))
    'list of str or None'

    Raises
    ------
    Misfit
        The annotation is something else.
    """
    match node:
        case ast.Constant(value=None):
            return Kind("None")
        case ast.Name(id="list"):
            return Kind("list", (ANYTHING,))
        case ast.Name(id="dict"):
            return Kind("dict", (ANYTHING, ANYTHING))
        case ast.Name(id=name) if name in SCALARS:
            return Kind(name)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = [kind_of_annotation(left), kind_of_annotation(right)]
            return one_of(part for side in sides for part in (side.parts if side.name == "one of" else (side,)))
        case ast.Subscript(value=ast.Name(id="Optional"), slice=part):
            return one_of([kind_of_annotation(part), Kind("None")])
        case ast.Subscript(value=ast.Name(id="list"), slice=part):
            return Kind("list", (kind_of_annotation(part),))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, element])):
            return Kind("dict", (kind_of_annotation(key), kind_of_annotation(element)))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=part):
            return Kind("literal", values=_literals(part))
    raise Misfit(
        f"annotation {ast.unparse(node)!r} is not supported; use str, int, float, bool, None, list[...], "
        "dict[..., ...], Literal[...] or |"
    )


def _literals(node: ast.expr) -> tuple:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise Misfit(f"Literal[{ast.unparse(node)}] holds something other than plain values") from None
    return value if isinstance(value, tuple) else (value,)


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


def read_parameters(path: Path) -> dict[str, object]:
    """
    Parameters by name from a YAML file.

    Raises
    ------
    ParameterError
        The file is missing, or holds something other than names with values.
    """
    data = read_yaml(path, "parameters")
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ParameterError(
            f"{path}: expected lines of `name: value`, found {type(data).__name__} {str(data)[:80]!r}."
        )
    return data


def preset_paths(notebook: str, root: Path) -> dict[str, Path]:
    """The presets of a notebook (its name without the ending), by name."""
    return {path.stem: path for path in sorted((root / ROOT_MARK / notebook).glob("*.yml"))}


def find_preset(notebook: str, preset: str, root: Path) -> Path | None:
    """
    The file of a preset; None for a notebook without presets, which runs with its defaults.

    Raises
    ------
    ParameterError
        The notebook has presets, but not this one.
    """
    presets = preset_paths(notebook, root)
    if preset in presets:
        return presets[preset]
    if not presets:
        return None
    near = difflib.get_close_matches(preset, presets, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ParameterError(f"{notebook} has no preset {preset!r}{hint}; it has {', '.join(presets)}.")


# Parameters whose values are paths of files, as are those of every name that ends in `ENDING`, at any depth.
FILES = ("workload", "driver", "inventory")
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
