"""Sphinx settings of the documentation: Markdown pages, and a reference from the docstrings. `make docs` builds it."""

import re
import sys
from argparse import _SubParsersAction
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))

from wanbench import __version__
from wanbench.cli import parser

project = "wanbench"
author = "the wanbench developers"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["requirements.txt"]
default_role = "code"
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "wanbench documentation"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_permalinks_icon = "#"


class Commands(SphinxDirective):
    """Show the help of every command, as `wanbench COMMAND --help` prints it."""

    def run(self) -> list[nodes.Node]:
        groups = [action for action in parser()._actions if isinstance(action, _SubParsersAction)]
        shown = []
        for name, command in groups[0].choices.items():
            section = nodes.section("", nodes.title("", f"wanbench {name}"), ids=[name])
            text = command.format_help()
            section += nodes.literal_block(text, text, language="text")
            shown.append(section)
        return shown


ARGUMENT = re.compile(r"(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): (.+)")
RAISES = re.compile(r"Raises (\w+): (.+)")


def fields(app, what, name, obj, options, lines: list[str]) -> None:
    """Turn lines "name: meaning" and "Raises Error: when" of a docstring into fields of reStructuredText."""
    before = ""
    for number, line in enumerate(lines):
        field = ""
        if before == "" or before.startswith((":", "    ")):
            if found := ARGUMENT.fullmatch(line):
                field = f":param {found[1].replace('*', '')}: {found[2]}"
            elif found := RAISES.fullmatch(line):
                field = f":raises {found[1]}: {found[2]}"
        before = lines[number] = field or line


def setup(app) -> None:
    """Register the directive, and the reading of docstrings."""
    app.add_directive("commands", Commands)
    app.connect("autodoc-process-docstring", fields, priority=400)
