"""
The parameters of a notebook: its `parameters` cell, the check of given values, presets, and paths of files.

papermill only warns of unknown names and ignores types, so a misspelt parameter would measure for an hour with the
default. Here both are errors before anything runs.
"""

import ast
import difflib
import hashlib
import io
import os
import tokenize
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Optional, Union, get_args, get_origin

import nbformat

from wanbench.errors import ParameterError
from wanbench.folders import ROOT_MARK
from wanbench.plain_yaml import parse_yaml, read_yaml

from .notebooks import read_notebook, tags

SCALARS = (str, int, float, bool, NoneType)
ANNOTATIONS = {one.__name__: one for one in (str, int, float, bool, list, dict)}
ANNOTATIONS |= {"Literal": Literal, "Optional": Optional}
# What an annotation may consist of: nothing that runs code.
PLAIN = (ast.Name, ast.Load, ast.Constant, ast.Subscript, ast.Tuple, ast.BinOp, ast.BitOr, ast.UnaryOp, ast.USub)


class Misfit(ValueError):
    """A value of the wrong kind; the message says where inside the value, and what was found."""


def kind_text(kind) -> str:
    """
    Describe a kind: a plain type, a list, dict, Literal or union of such, or `object` for anything.

    >>> kind_text(list[float] | None)
    'list of float or None'
    """
    origin, parts = get_origin(kind) or kind, get_args(kind) or (object, object)
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin in (Union, UnionType):
        return " or ".join(map(kind_text, parts))
    if origin in (list, dict):
        return f"{origin.__name__} of " + " to ".join(map(kind_text, parts[: 1 if origin is list else 2]))
    if kind not in (*SCALARS, object):
        raise TypeError(f"{kind!r} is no kind of plain values")
    return {object: "anything", NoneType: "None"}.get(kind) or kind.__name__


def accept(kind, value: object, place: str = "") -> object:
    """
    Check plain data, as from YAML, against a kind; Misfit if it is of another.

    An int is converted to float if required; a bool is not a number; nothing else is converted.
    """
    origin, parts = get_origin(kind) or kind, get_args(kind) or (object, object)
    if origin is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is object or type(value) is kind:
        return value
    if origin is Literal and any(type(value) is type(allowed) and value == allowed for allowed in parts):
        return value
    if origin is list and isinstance(value, list | tuple):
        return [accept(parts[0], element, f"{place}[{i}]") for i, element in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        pairs = [(accept(parts[0], key, f"{place} key"), key) for key in value]
        return {name: accept(parts[1], value[key], f"{place}[{key!r}]") for name, key in pairs}
    if origin in (Union, UnionType):
        wanted = [part for part in parts if part is not int or float not in parts]
        for part in sorted(wanted, key=lambda part: part is float):
            with suppress(Misfit):
                return accept(part, value, place)
    where = f" at {place}" if place else ""
    raise Misfit(f"must be {kind_text(kind)}{where}, not {value!r} ({type(value).__name__})")


def kind_of_value(value: object):
    """
    The kind of a default value.

    >>> kind_text(kind_of_value([1, 2.5]))
    'list of float'
    """

    def union(values):
        kinds = list(map(kind_of_value, values))
        kinds = [kind for kind in kinds if kind is not int] if float in kinds else kinds  # an int is a float, too
        return reduce(or_, kinds) if kinds else object

    if isinstance(value, list | tuple):
        return list[union(value)]
    if isinstance(value, dict):
        return dict[union(list(value)), union(list(value.values()))]
    if type(value) not in SCALARS:
        raise Misfit(f"{value!r} ({type(value).__name__}) is not a plain value")
    return type(value)


def kind_of_annotation(node: ast.expr):
    """
    The kind of an annotation: str, int, float, bool, None, list[...], dict[..., ...], Literal[...], Optional[...], `|`.

    >>> kind_text(kind_of_annotation(ast.parse("list[str] | None", mode="eval").body))
    'list of str or None'
    """
    try:
        if not all(isinstance(one, PLAIN) for one in ast.walk(node)):
            raise TypeError
        kind = eval(ast.unparse(node), {"__builtins__": {}}, ANNOTATIONS)
        kind = NoneType if kind is None else kind
        kind_text(kind)
    except (TypeError, NameError):
        raise Misfit(
            f"annotation {ast.unparse(node)!r} is not supported; use str, int, float, bool, None, list[...], "
            "dict[..., ...], Literal[...] or |"
        ) from None
    return kind


TAG = "parameters"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook: name, default, allowed kind, and comment."""

    name: str
    default: object
    kind: object
    comment: str


def declared_parameters(notebook: nbformat.NotebookNode, name: str) -> dict[str, Parameter]:
    """
    The parameters in the cell tagged `parameters`, by name, in order; messages call the notebook `name`.

    Raises ParameterError if two cells carry the tag, or the cell holds anything but assignments of plain literals, or a
    default that its annotation does not allow, or a default of None that no annotation explains.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and TAG in tags(cell)]
    if len(cells) > 1:
        raise ParameterError(f"{name}: {len(cells)} cells are tagged {TAG!r}; one is allowed.")
    return _parse(cells[0].source, name) if cells else {}


def check_parameters(
    notebook: nbformat.NotebookNode, given: Mapping[str, object], name: str, source: str = ""
) -> dict[str, object]:
    """
    Check given values by parameter name against the notebook, which messages call `name`.

    `source` says in messages where the values come from, such as the path of a preset. Raises ParameterError if a name
    is unknown or a value of the wrong kind: it lists all faults, with what is allowed.
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
            accepted[key] = accept(declared[key].kind, value)
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

    >>> count = Parameter("count", 20, int, "")
    >>> parse_assignment("count=5", {"count": count})
    ('count', 5)
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ParameterError(f"{text!r} is not a parameter; write name=value.")
    if name in declared and declared[name].kind is str:
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
            accept(kind, default)
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
    Read parameters by name from a YAML file; ParameterError if it is missing, or holds something else.
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

    Raises ParameterError if the notebook has presets, but not this one.
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
    given: Mapping, declared: Collection[str], notebook: Path, starts: Sequence[Path], top: Path, source: str = ""
) -> dict[str, object]:
    """
    Convert the paths among given parameters to the notebook's folder.

    A relative path starts in the first of `starts` that has the file; the folder in which the command was typed comes
    first. Inside the checkout `top`, paths become relative to the notebook's folder, so that a page is the same on
    every machine; others become absolute. An empty path or None stays, as does what is not `declared`. Raises
    ParameterError if there is no such file: it names the parameter, every place that was tried, and `source`.
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
