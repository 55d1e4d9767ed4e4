"""
Read the `parameters` cell of a notebook and its presets, and check values and file paths before anything runs.

papermill only warns about unknown names and ignores types: with a misspelt parameter, a notebook would measure for an
hour with the default. Here both are errors.
"""

import ast
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
from typing import Any, Literal, Union, get_args, get_origin

import nbformat

from wanbench.errors import ParameterError
from wanbench.folders import ROOT_MARK
from wanbench.plain_yaml import parse_yaml, read_yaml

from .notebooks import did_you_mean, read_notebook, tags

SCALARS = (str, int, float, bool, NoneType)
ANNOTATIONS: dict[str, Any] = {one.__name__: one for one in (str, int, float, bool, list, dict)}
ANNOTATIONS["Literal"] = Literal
# Syntax that an annotation may contain: none of it runs code.
PLAIN = (ast.Name, ast.Load, ast.Constant, ast.Subscript, ast.Tuple, ast.BinOp, ast.BitOr, ast.UnaryOp, ast.USub)


class Misfit(ValueError):
    """A value has the wrong type; the message quotes the value and its place in a list or dict."""


def kind_text(kind: Any) -> str:
    """
    Describe a type in words: a scalar, a list, a dict, a Literal, a union of these, or `object` for any type.

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
        raise TypeError(f"{kind!r} is not a kind of plain value")
    return {object: "anything", NoneType: "None"}.get(kind) or kind.__name__


def accept(kind: Any, value: object, place: str = "") -> object:
    """
    Check plain data, such as from YAML, against a type, and return them. Raise Misfit if they have another type.

    An int becomes a float where a float is required; nothing else is converted. A bool is not accepted as a number.
    `place` says where in a parameter's value the data are, such as "[2]".
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


def kind_of_value(value: object) -> Any:
    """
    Return the type that a parameter's values must have if its default is `value`.

    >>> kind_text(kind_of_value([1, 2.5]))
    'list of float'
    """

    def union(values: Sequence[object]) -> Any:
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
    Return the type that an annotation means; raise Misfit if it contains anything but the types of plain values.

    >>> kind_text(kind_of_annotation(ast.parse("list[str] | None", mode="eval").body))
    'list of str or None'
    """
    try:
        if not all(isinstance(one, PLAIN) for one in ast.walk(node)):
            raise TypeError
        # Only names of types and brackets, checked above.
        kind = eval(ast.unparse(node), {"__builtins__": {}}, ANNOTATIONS)  # nosec B307
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
    """One parameter of a notebook; `kind` is the type that its value must have."""

    name: str
    default: object
    kind: object
    comment: str


def declared_parameters(notebook: nbformat.NotebookNode, name: str) -> dict[str, Parameter]:
    """
    Return the parameters in the cell tagged `parameters`, by name. Error messages call the notebook `name`.

    Raise ParameterError if two cells have the tag, if the cell contains anything but assignments of literals, if a
    default does not fit its annotation, or if a default is None without an annotation.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and TAG in tags(cell)]
    if len(cells) > 1:
        raise ParameterError(f"{name}: {len(cells)} cells are tagged {TAG!r}; one is allowed.")
    return _parse(cells[0].source, name) if cells else {}


def check_parameters(
    notebook: nbformat.NotebookNode, given: Mapping[str, object], name: str, source: str = ""
) -> dict[str, object]:
    """
    Check values by parameter name against a notebook's parameters, and return them, ints as floats where required.

    Error messages call the notebook `name`, and the origin of the values `source`, such as the path of a preset. Raise
    ParameterError, which lists all faults, if a name is unknown or a value has the wrong type.
    """
    declared = declared_parameters(notebook, name)
    faults, accepted = [], {}
    for key, value in given.items():
        if key not in declared:
            hint = did_you_mean(str(key), declared)
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
    """Check values as `check_parameters` does, against the notebook in a file."""
    return check_parameters(read_notebook(path), given, path.name, source)


def parse_assignment(text: str, declared: Mapping[str, Parameter]) -> tuple[str, object]:
    """
    Parse "name=value" from a command line. The value is read as YAML, or as text if the parameter is a str.

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
        message = f"{name}: the parameters cell is not valid Python: {error.msg}, line {error.lineno}."
        raise ParameterError(message) from None
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
                raise ParameterError(f"{place} is not an assignment of a literal to a name.")
        if key in parameters:
            raise ParameterError(f"{place} assigns {key!r} for the second time.")
        try:
            default = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError):
            raise ParameterError(f"{place}: {ast.unparse(value)!r} is not a literal; write the value itself.") from None
        if annotation is None and default is None:
            raise ParameterError(f"{place}: {key!r} is None; annotate its type, as in `{key}: int | None = None`.")
        try:
            kind = kind_of_value(default) if annotation is None else kind_of_annotation(annotation)
            accept(kind, default)
        except Misfit as misfit:
            raise ParameterError(f"{place}: {key!r}: {misfit}.") from None
        parameters[key] = Parameter(key, default, kind, _comment_for(statement, comments))
    return parameters


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """Return by line number the comment, and whether it is the only content of its line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: (token.string.lstrip("# ").rstrip(), token.line.lstrip().startswith("#"))
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _comment_for(statement: ast.stmt, comments: dict[int, tuple[str, bool]]) -> str:
    """Return the comment at the end of the first or last line of a statement, or else the comment on the line above."""
    for line in (statement.lineno, statement.end_lineno):
        if line in comments:
            return comments[line][0]
    above = comments.get(statement.lineno - 1)
    return above[0] if above and above[1] else ""


def read_parameters(path: Path) -> dict[str, object]:
    """Read values by parameter name from a YAML file; raise ParameterError if it is missing or holds no mapping."""
    data = read_yaml(path, "parameters")
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        message = f"{path}: expected lines of `name: value`, found {type(data).__name__} {str(data)[:80]!r}."
        raise ParameterError(message)
    return data


def preset_paths(notebook: str, root: Path) -> dict[str, Path]:
    """Return the preset files of a notebook, by preset; `notebook` is its name without ".ipynb"."""
    return {path.stem: path for path in sorted((root / ROOT_MARK / notebook).glob("*.yml"))}


def find_preset(notebook: str, preset: str, root: Path) -> Path | None:
    """
    Return the file of a preset, or None for a notebook without presets, which runs with its defaults.

    Raise ParameterError if the notebook has only other presets.
    """
    presets = preset_paths(notebook, root)
    if preset in presets:
        return presets[preset]
    if not presets:
        return None
    hint = did_you_mean(preset, presets)
    raise ParameterError(f"{notebook} has no preset {preset!r}{hint}; it has {', '.join(presets)}.")


# Parameters with these names, or with a name that ends in `ENDING`, contain paths; so do such keys inside their values.
FILES = ("workload", "driver", "inventory")
ENDING = "_file"


def resolve_paths(
    given: Mapping[str, Any], declared: Collection[str], notebook: Path, starts: Sequence[Path], top: Path, source: str
) -> dict[str, object]:
    """
    Replace file paths in parameter values by paths that are valid in the notebook's folder.

    A relative path is looked up in each folder of `starts` in turn. The path of a file inside the checkout `top`
    becomes relative to the notebook's folder, so that the page is the same on every machine; other paths become
    absolute. Empty paths, None and parameters that are not in `declared` are not changed. Raise ParameterError, which
    names `source`, the parameter and every path tried, if there is no such file.
    """

    def find(name: str, text: str) -> str:
        tried = [Path(start, os.path.expanduser(text)).resolve() for start in starts]
        found = next((path for path in tried if path.is_file()), None)
        if found is None:
            places = " or ".join(map(str, dict.fromkeys(tried)))
            hint = "" if Path(text).is_absolute() else "; a relative path starts in the working directory"
            raise ParameterError(
                f"{f'{source}: ' if source else ''}parameter {name!r} is {text!r}, but there is no file {places}{hint}."
            )
        inside = found.is_relative_to(top.resolve())
        return os.path.relpath(found, notebook.parent.resolve()) if inside else str(found)

    return {name: _each_path(name, value, find) if name in declared else value for name, value in given.items()}


def file_hashes(given: Mapping[str, object], notebook: Path) -> list[str]:
    """Return a hash of the content of each file that a parameter names (see `resolve_paths`)."""
    hashes = []

    def add(name: str, text: str) -> str:
        path = notebook.parent / text
        hashes.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else f"no {name}")
        return text

    for name, value in given.items():
        _each_path(name, value, add)
    return hashes


def _each_path(name: str, value: object, change: Callable[[str, str], str]) -> object:
    """Return a parameter's value with `change(name, path)` applied to each path in it."""
    if isinstance(value, Mapping):
        return {key: _each_path(str(key), one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_each_path(name, one, change) for one in value]
    is_path = (name in FILES or name.endswith(ENDING)) and isinstance(value, str) and value
    return change(name, str(value)) if is_path else value
