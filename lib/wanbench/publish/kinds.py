"""
Types of parameters: a kind, made from an annotation or from a default value.

A kind accepts plain data, as from YAML. An int is converted to float if required; a bool is not a number; nothing else
is converted.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

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
