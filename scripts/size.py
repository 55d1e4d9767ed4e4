"""
Print the size of the library: lines of code and of docstrings, and files, by room; and code outside `pages/` that one
notebook alone reaches.

    .venv/bin/python scripts/size.py [checkout]

A line of code is one that is not blank, no comment and no docstring; a text below a constant is a docstring too. A
notebook reaches what its cells name, and whatever that names in turn; a class counts as a whole. Names that exist as
text only (entry points) are not followed.
"""

import ast
import json
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(sys.argv[1]) if __name__ == "__main__" and sys.argv[1:] else Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "wanbench"
OFF_PAGES = ("measure", "read", "methods", "figures")
"""Rooms in which code that one notebook alone reaches is listed; publish, runs and tables serve the command as well."""


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = ("wanbench", *path.relative_to(LIBRARY).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_name(path): path for path in sorted(LIBRARY.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in PATHS.items()}


@cache
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and all below it."""
    return tuple(ast.walk(node))


@cache
def lines(name: str) -> tuple[int, int]:
    """Count the lines of code and of docstrings of a module."""
    text, documented = PATHS[name].read_text().splitlines(), set()
    for node in walk(TREES[name]):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented |= set(range(node.lineno, node.end_lineno + 1))
    code = [at for at, line in enumerate(text, 1) if line.strip() and not line.strip().startswith("#")]
    return len(set(code) - documented), len(documented)


def imported(node: ast.AST, name: str) -> dict[str, tuple[str, str]]:
    """Map the names that the imports below a node bind to (module, name in it); "" for the module itself."""
    names = {}
    for each in walk(node):
        if isinstance(each, ast.ImportFrom):
            here = name.split(".") if PATHS.get(name, Path()).name == "__init__.py" else name.split(".")[:-1]
            start = ".".join(here[: len(here) - each.level + 1]) if each.level else ""
            module = ".".join(filter(None, (start, each.module)))
            names |= {one.asname or one.name: (module, one.name) for one in each.names}
        elif isinstance(each, ast.Import):
            names |= {one.asname or one.name: (one.name, "") for one in each.names}
    return names


IMPORTED = {name: imported(tree, name) for name, tree in TREES.items()}


def defined(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """Map the names that a module defines itself to their statements."""
    found = defaultdict(list)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name].append(node)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            for each in walk(node):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    found[each.id].append(node)
    return found


DEFINED = {name: defined(tree) for name, tree in TREES.items()}


@cache
def resolve(module: str, name: str) -> tuple[str, str] | None:
    """Return where a name of a module is defined: (module, name), or (module, "") if it is a module."""
    for _ in range(9):  # through at most so many packages that hand a name on
        if name in DEFINED.get(module, ()):
            return module, name
        if IMPORTED.get(module, {}).get(name, (module, name)) == (module, name):  # `from . import name` names itself
            below = f"{module}.{name}" if name else module
            return (below, "") if below in TREES else None
        module, name = IMPORTED[module][name]
    return None


def used(node: ast.AST, module: str, names: dict[str, tuple[str, str]]) -> set[tuple[str, str]]:
    """Return what a node names, as `resolve` returns it."""

    def value(each):
        if isinstance(each, ast.Name):
            return resolve(*names[each.id]) if each.id in names else resolve(module, each.id)
        if isinstance(each, ast.Attribute) and (owner := value(each.value)):
            return owner if owner[1] else resolve(owner[0], each.attr)
        return None

    here = [value(each) for each in walk(node) if isinstance(each, ast.Name | ast.Attribute)]
    here += [resolve(*one) for one in imported(node, module).values() if one[1]]
    return {each for each in here if each and each[1]}


EDGES = {
    (module, name): set().union(*(used(node, module, {}) for node in nodes))
    for module, names in DEFINED.items()
    for name, nodes in names.items()
}


def reached(notebook: Path) -> set[tuple[str, str]]:
    """Return all definitions that a notebook reaches."""
    cells = json.loads(notebook.read_text())["cells"]
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    waiting, found = list(used(tree, "", imported(tree, ""))), set()
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += EDGES.get(each, ())
    return found


def reached_by_one() -> dict[str, tuple[str, int]]:
    """Map each module of `OFF_PAGES` that one notebook alone reaches to (notebook, lines of code)."""
    users = defaultdict(set)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for module, _ in reached(notebook):
            users[module].add(notebook.stem)
    rooms = {name for name in users if name.split(".")[1:2] and name.split(".")[1] in OFF_PAGES}
    return {name: (*users[name], lines(name)[0]) for name in sorted(rooms) if len(users[name]) == 1}


def main():
    """Print the table and the list."""
    rooms = defaultdict(lambda: [0, 0, 0])
    for name, path in PATHS.items():
        room = path.relative_to(LIBRARY).parts[:-1]
        for key in {
            "total",
            *("/".join(room[:depth]) or "core" for depth in (1, 2) if len(room) >= depth or depth == 1),
        }:
            rooms[key] = [a + b for a, b in zip(rooms[key], (*lines(name), 1), strict=True)]
    print(f"{'room':36}{'code':>8}{'docstrings':>12}{'files':>7}")
    for room in sorted(rooms, key=lambda each: (each == "total", each)):
        print("{:36}{:8,}{:12,}{:7,}".format(room, *rooms[room]))
    all_lines = sum(len(path.read_text().splitlines()) for path in PATHS.values())
    print(f"Docstrings are {rooms['total'][1] / all_lines:.1%} of {all_lines:,} lines.")
    print("Outside pages/, reached by one notebook alone:")
    for name, (notebook, code) in reached_by_one().items():
        print(f"    {name:56}{code:5}  {notebook}")


if __name__ == "__main__":
    main()
