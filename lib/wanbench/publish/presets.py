"""Presets: named sets of parameters, one YAML file each in `papermill-params/<notebook>/`."""

from __future__ import annotations

import difflib
from pathlib import Path

from wanbench.errors import ParameterError
from wanbench.folders import ROOT_MARK
from wanbench.plain_yaml import read_yaml


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
