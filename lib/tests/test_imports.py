"""
The two banks: analysing code never reaches measuring code, nor the other way; `runs` reaches neither. Only what a
notebook or a person calls may bring both together, and neither bank reaches that.
"""

import ast
from pathlib import Path

import pytest

import wanbench

PACKAGE = Path(wanbench.__file__).parent
MEASURING = {"labs", "links", "experiments", "plan", "measure", "progress", "campaign", "kafka", "studies"}
ANALYSING = {
    "audits", "claims", "columns", "figures", "findings", "gate", "importers", "ingest", "publish", "stats", "tables",
    "validity",
}  # fmt: skip
BRIDGE = {"designs", "runs", "errors"}
BOTH = {"calibrate", "cli", "doctor"}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below wanbench ("" is the package itself)."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(source: str, name: str, is_package: bool, known: set[str]) -> set[str]:
    """
    The modules of wanbench, as names below it, that a module's source imports anywhere; "" for a name of
    the package's own, "*" for the whole package.
    """
    out = set()
    here = [part for part in name.split(".") if part]
    for node in ast.walk(ast.parse(source)):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module.split(".") if node.module else []
            if node.level:
                package = here if is_package else here[:-1]
                base = ["wanbench", *package[: len(package) - node.level + 1], *base]
            targets = [[*base, alias.name] for alias in node.names]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__")
            and node.args
        ):
            word = node.args[0]
            if not isinstance(word, ast.Constant) or not isinstance(word.value, str):
                continue
            targets = [word.value.split(".")]
        for target in targets:
            if target[0] != "wanbench":
                continue
            below = target[1:]
            while below and ".".join(below) not in known:
                below = below[:-1]
            out.add(".".join(below) if target[1:] else "*")
    return out


def graph() -> dict[str, set[str]]:
    found = modules()
    return {
        name: imported(path.read_text(), name, path.name == "__init__.py", set(found)) - {name}
        for name, path in found.items()
    }


def reached(start: str, edges: dict[str, set[str]]) -> dict[str, str]:
    """Every module that `start` imports, directly or not, with the way there."""
    ways, waiting = {}, [(start, start)]
    while waiting:
        name, way = waiting.pop()
        for other in sorted(edges.get(name, ())):
            if other not in ways and other != start:
                ways[other] = f"{way} -> {other or 'wanbench'}"
                waiting.append((other, ways[other]))
    return ways


def top(name: str) -> str:
    return name.split(".")[0]


def trespasses(starts: set[str], forbidden: set[str], edges: dict[str, set[str]]) -> list[str]:
    return [
        way
        for name in sorted(edges)
        if top(name) in starts
        for other, way in reached(name, edges).items()
        if top(other) in forbidden or other == "*"
    ]


def test_analysing_code_never_reaches_measuring_code():
    assert trespasses(ANALYSING, MEASURING | BOTH, graph()) == []


def test_measuring_code_never_reaches_analysing_code():
    assert trespasses(MEASURING, ANALYSING | BOTH, graph()) == []


def test_the_bridge_reaches_neither():
    assert trespasses(BRIDGE, MEASURING | ANALYSING | BOTH, graph()) == []


def test_every_name_here_exists_or_is_still_to_come():
    tops = {top(name) for name in modules()}
    assert {"runs", "errors", "plan", "experiments", "measure", "labs"} <= tops


@pytest.mark.parametrize(
    "source, name, is_package, expected",
    [
        ("from ..labs.base import Host", "ingest.ping", False, {"labs.base"}),
        ("from .. import labs", "ingest.ping", False, {"labs"}),
        ("from ..labs import base", "ingest.ping", False, {"labs.base"}),
        ("from .labs import base", "tables", False, {"labs.base"}),
        ("from . import base", "labs", True, {"labs.base"}),
        ("def f():\n    import wanbench.measure as m", "stats.line", False, {"measure"}),
        ("from wanbench import measure", "publish", True, {"measure"}),
        ("import wanbench", "publish", True, {"*"}),
        ("from .. import __version__", "publish.page", False, {""}),
        ("import importlib\nimportlib.import_module('wanbench.labs.local')", "figures", True, {"labs.local"}),
        ("import numpy, json\nfrom pathlib import Path", "figures", True, set()),
    ],
)
def test_imports_are_found_wherever_they_stand(source, name, is_package, expected):
    known = {"labs", "labs.base", "labs.local", "measure", "publish", "tables", "figures", "ingest.ping", ""}
    assert imported(source, name, is_package, known) == expected


def test_a_way_over_several_modules_is_found():
    edges = {"ingest": {"wording"}, "wording": {"runs", "plan"}, "plan": set(), "runs": set(), "": set()}
    assert trespasses({"ingest"}, {"plan"}, edges) == ["ingest -> wording -> plan"]
