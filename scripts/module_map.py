"""Print docs/modules.md: every module of the library by room, with the first sentence of its docstring and names."""

import ast
import re
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "lib" / "wanbench"
TABLES = (".csv", ".tsv", ".yaml", ".xml")
HEAD = """\
# Every module, by room

Written by `.venv/bin/python scripts/module_map.py > docs/modules.md`; a test checks that it is current. Search it
for the word of your question; [changing.md](changing.md) says where a change goes.
"""


def sentence(text: str) -> str:
    """Return the first sentence of a docstring in one line."""
    return re.split(r"(?<=\.)(?<!et al\.)\s", " ".join(text.split()), maxsplit=1)[0]


def names(tree: ast.Module) -> list[str]:
    """Return the public classes, functions and constants that a module defines, in their order."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def module_map(library: Path = LIBRARY) -> str:
    """Return the text of docs/modules.md."""
    lines = [HEAD]
    for folder in sorted({path.parent for path in library.rglob("*.py")}):
        lines.append(f"\n## {folder.relative_to(library.parent).as_posix()}\n")
        for path in sorted(folder.iterdir()):
            if path.suffix == ".py":
                tree = ast.parse(path.read_text("utf-8"))
                own = names(tree) if path.name != "__init__.py" else []
                listed = f" *{', '.join(f'`{name}`' for name in own)}*" if own else ""
                lines.append(f"- **{path.name}**: {sentence(ast.get_docstring(tree) or '')}{listed}")
            elif path.suffix in TABLES:
                lines.append(f"- **{path.name}**")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(module_map(), end="")
