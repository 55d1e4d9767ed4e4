"""
The two banks: analysing code never reaches measuring code, nor the other way; what both may use reaches neither. Only
what a person calls may bring both together. No module imports itself by a detour.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import wanbench

PACKAGE = Path(wanbench.__file__).parent
MEASURING = {"measure", "pages.*.design"}
ANALYSING = {"findings", "figures", "methods", "pages", "publish", "read"}
SHARED = {
    "", "change_detection", "checks", "designs", "errors", "extensions", "files", "folders", "formatting", "open_loop",
    "plain_yaml", "regions", "runs", "tables",
}  # fmt: skip
ENTRANCES = {"__main__", "cli", "doctor"}


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


@cache
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


def bank(name: str) -> str:
    """The part of the package that decides a module's bank; a page's design measures, the rest of its room analyses."""
    first, *rest = name.split(".")
    return "pages.*.design" if first == "pages" and rest[1:2] == ["design"] else first


def trespasses(starts: set[str], forbidden: set[str], edges: dict[str, set[str]]) -> list[str]:
    return [
        way
        for name in sorted(edges)
        if bank(name) in starts
        for other, way in reached(name, edges).items()
        if bank(other) in forbidden or other == "*"
    ]


def circles(edges: dict[str, set[str]]) -> list[str]:
    """Every set of modules that import each other, as a sorted line (Tarjan's strongly connected components)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                found.append(" <-> ".join(sorted(members)))

    for name in sorted(edges):
        if name not in number:
            visit(name)
    return sorted(found)


def test_analysing_code_never_reaches_measuring_code():
    assert trespasses(ANALYSING, MEASURING | ENTRANCES, graph()) == []


def test_measuring_code_never_reaches_analysing_code():
    assert trespasses(MEASURING, ANALYSING | ENTRANCES, graph()) == []


def test_what_both_banks_use_reaches_neither():
    assert trespasses(SHARED, MEASURING | ANALYSING | ENTRANCES, graph()) == []


def test_no_module_imports_itself_by_a_detour():
    assert circles(graph()) == []


def test_no_method_imports_a_page():
    rooms = {"figures", "findings", "methods", "read"}
    assert trespasses(rooms, {"pages"}, graph()) == []


def test_no_page_imports_another():
    def page(name):
        return name.split(".")[1] if name.startswith("pages.") else ""

    assert [
        (name, other)
        for name, found in graph().items()
        for other in found
        if page(name) and page(other) not in ("", page(name))
    ] == []


def test_the_library_imports_no_simulation():
    assert [
        str(path)
        for path in modules().values()
        if "import simulations" in (text := path.read_text()) or "from simulations" in text
    ] == []


def test_every_module_stands_in_exactly_one_bank():
    banks = [MEASURING, ANALYSING, SHARED, ENTRANCES]
    found = {bank(name) for name in modules()}
    assert {name: sum(name in each for each in banks) for name in found} == dict.fromkeys(found, 1)
    assert set().union(*banks) == found


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


def test_a_circle_is_found_and_a_chain_is_none():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == ["a <-> b <-> c"]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
