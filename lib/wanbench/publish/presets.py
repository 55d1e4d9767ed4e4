"""Presets: named sets of parameters, one YAML file each in `papermill-params/<notebook>/`."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import yaml

from ..errors import ParameterError
from ..folders import ROOT_MARK


class _Loader(yaml.SafeLoader):
    """Plain data only, and no key twice (YAML would silently keep the last)."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict:
    loader.flatten_mapping(node)
    result = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        try:
            seen = key in result
        except TypeError:
            raise yaml.constructor.ConstructorError(
                None, None, "this cannot be a key", key_node.start_mark
            ) from None
        if seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"{key!r} stands here twice", key_node.start_mark
            )
        result[key] = loader.construct_object(value_node, deep=True)
    return result


# YAML 1.1 takes 1e8 for text; whoever writes it means the number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+"),
    list("-+0123456789"),
)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def parse_yaml(text: str, place: str) -> object:
    """
    Plain data from YAML text.

    Raises
    ------
    ParameterError
        It is not YAML, has a key twice or asks for anything but plain data; names `place` and the line.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ParameterError(f"{place}{line}: {error.problem or 'this is not YAML'}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ParameterError(f"{place}: this is not YAML: {error}.") from None


def read_parameters(path: Path) -> dict[str, object]:
    """
    Parameters by name from a YAML file.

    Raises
    ------
    ParameterError
        The file is missing, or holds something other than names with values.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"{path}: the parameters cannot be read: {getattr(error, 'strerror', error)}."
        ) from None
    data = parse_yaml(text, str(path))
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
    The file of a preset; None for a notebook that has no presets at all, which then runs with its defaults.

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
