"""Read the notebooks and parameters of a batch, from a file or from the sweeps of a command line."""

import re
from collections.abc import Mapping
from pathlib import Path

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.plain_yaml import parse_yaml, read_yaml

from .parameters import Parameter

ENTRY = ("notebook", "parameters", "sweep")


def read_batch(path: Path) -> list[tuple[str, dict[str, object], dict[str, list[object]]]]:
    """
    Read a batch file; return notebook, parameters and sweep of each entry.

    The YAML file lists mappings with `notebook` and, optionally, `parameters` and `sweep` (values by parameter name).
    """
    entries, read = read_yaml(path, "batch"), []
    for number, entry in enumerate(entries if isinstance(entries, list) and entries else [entries], 1):
        place, given = f"{path}: entry {number}", entry if isinstance(entry, dict) and entry.keys() <= {*ENTRY} else {}
        notebook, parameters, sweep = (given.get(key, {}) for key in ENTRY)
        if not isinstance(notebook, str | int) or not (isinstance(parameters, dict) and isinstance(sweep, dict)):
            raise refusal(place, entry, "notebook: a name; parameters, sweep: lines of `name: value`")
        name = f"{notebook:02}" if isinstance(notebook, int) else notebook  # YAML reads 02 as a number
        values = {key: _values(f"{place}: sweep of {key!r}", value) for key, value in sweep.items()}
        read.append((name, parameters, values))
    return read


def parse_sweep(text: str, declared: Mapping[str, Parameter]) -> tuple[str, list[object]]:
    """
    Parse "name=values" from a command line: values between commas, a range of whole numbers, or a list in YAML.

    >>> parse_sweep("seed=1..3", {})
    ('seed', [1, 2, 3])
    >>> parse_sweep("clouds=[[aws], [aws, gcp]]", {})
    ('clouds', [['aws'], ['aws', 'gcp']])
    """
    name, equals, values = text.partition("=")
    name, what = name.strip(), f"the sweep of {name.strip()!r}"
    if not equals or not name or not values.strip():
        raise ParameterError(f"{text!r} is no sweep; write name=value,value or name=1..5.")
    if values.lstrip().startswith("["):
        return name, _values(what, parse_yaml(values, what))
    if name in declared and declared[name].kind is str:
        return name, _values(what, values.split(","))
    return name, _values(what, values if ".." in values else [parse_yaml(value, what) for value in values.split(",")])


def _values(what: str, values: object) -> list[object]:
    bounds = re.fullmatch(r"\s*(-?\d+)\.\.(-?\d+)\s*", values) if isinstance(values, str) else None
    found: object = list(range(int(bounds[1]), int(bounds[2]) + 1)) if bounds else values
    if not isinstance(found, list) or not found:
        raise refusal(what, values, "a list of values, or a range such as 1..5")
    return [*found]
