"""Read plain data in YAML: parameters, inventories, mappings of tables."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError

from .errors import ParameterError

MAX_CHARACTERS = 1 << 20  # per file: an inventory of a thousand hosts has about 200,000


class _Loader(yaml.SafeLoader):
    """Load plain data only; refuse aliases and repeated keys (YAML would silently keep the last value)."""

    def compose_node(self, parent: yaml.Node | None, index: int | yaml.Node | None) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # a few nested aliases can stand for billions of values
            alias = self.peek_event()
            raise ComposerError(None, None, f"the alias *{alias.anchor} is not allowed; write it out", alias.start_mark)
        return super().compose_node(parent, index)  # pyright: ignore[reportArgumentType]  # its stub knows only int

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        keys = []
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is repeated", key_node.start_mark)
            keys.append(key)
        return super().construct_mapping(node, deep=True)  # pyright: ignore[reportArgumentType]  # it refuses others


# YAML 1.1 reads 1e8 as text; here it is a number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_yaml(path: str | Path, what: str) -> object:
    """
    Read plain data from a YAML file of at most `MAX_CHARACTERS`; `what` describes the file in errors.

    Raise ParameterError if the file cannot be read, or for the reasons given at `parse_yaml`.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it holds more than {MAX_CHARACTERS:,} characters")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ParameterError(f"{path}: the {what} cannot be read: {why}.") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, place: str) -> object:
    """
    Parse plain data from YAML text.

    Raise ParameterError, with `place` and the line number, if the text is not YAML, repeats a key, uses an alias, or
    holds anything but plain data.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # nosec B506  # a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ParameterError(f"{place}{line}: {error.problem or 'this is not YAML'}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ParameterError(f"{place}: this is not YAML: {error}.") from None
