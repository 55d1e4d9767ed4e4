"""Documents hold what they show: blocks run, those that cannot run here are checked by name, and Sphinx is content."""

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from wanbench.cli import parser
from wanbench.plain_yaml import parse_yaml
from wanbench.publish.notebooks import find_notebook, read_notebook
from wanbench.publish.parameters import check_parameters, find_preset

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if path.stem != "CHANGELOG"
)
BLOCK = re.compile(r"(?:^<!-- (?P<mark>.*?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
WHOLE_PAGE = re.compile(r"^<!-- on this page (not run: .*) -->$", re.M)
REASONS = {
    "measures for minutes", "needs a Dask cluster", "needs a bucket", "needs a cluster of your own",
    "needs a page that was made",
    "needs a repository on GitHub", "needs an account of a cloud", "needs hosts of your own", "sets the machine up",
}  # fmt: skip
COMMANDS = "report|run|batch|sweep|bucket|claims|list|doctor|deposit|figure|campaign|compare"
COMMAND = re.compile(rf"\.venv/bin/wanbench ((?:{COMMANDS})\b[^`#;&|\n]*)")
IMPORTS = re.compile(r"^(?:from|import) .*$", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: `mark` is the comment before it."""

    page: str
    line: int
    mark: str
    language: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    def about(self, key: str) -> str:
        """What the mark says of `key`; "" if nothing."""
        found = re.search(rf"\b{key}:? ([^,]+)", self.mark)
        return found[1] if found else ""

    @property
    def runs(self) -> bool:
        return self.language in ("python", "sh") and not self.about("not run")


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    whole = WHOLE_PAGE.search(text)
    return [
        Block(
            page, text[: found.start("text")].count("\n"), found["mark"] or (whole[1] if whole else ""),
            found["language"], found["text"],
        )
        for found in BLOCK.finditer(text)
    ]  # fmt: skip


ALL = [block for page in PAGES for block in blocks(page)]
RUN = [page for page in PAGES if any(block.runs for block in blocks(page))]


def marks(page: str) -> list:
    """What the blocks of a page need, as marks of its test."""
    needs = {word for block in blocks(page) for word in block.about("needs").split() if block.runs}
    return [pytest.mark.slow, *(getattr(pytest.mark, word) for word in sorted(needs & {"lab", "kafka"}))]


@pytest.mark.parametrize("block", ALL, ids=str)
def test_every_block_is_well_formed_and_says_why_if_it_is_not_run(block):
    if reason := block.about("not run"):
        assert reason in REASONS
    elif block.runs:  # what sets the machine up would change the environment that runs the test
        assert not re.search(r"\bmake \w", block.text)
    if block.language == "python":
        ast.parse(block.text)
        for node in ast.walk(ast.parse("\n".join(IMPORTS.findall(block.text)))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("wanbench"):
                module = importlib.import_module(node.module)
                for name in node.names:
                    assert hasattr(module, name.name) or importlib.import_module(f"{node.module}.{name.name}")
    elif block.language == "sh":
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    elif block.language == "yaml":
        content = parse_yaml(block.text, str(block))
        if notebook := block.about("parameters of"):
            check_parameters(read_notebook(find_notebook(notebook, ROOT)), content, notebook, str(block))
    elif block.language in ("json", "toml"):
        (json if block.language == "json" else tomllib).loads(block.text)
    else:
        assert block.language == "text"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_wanbench_that_a_page_names_exists(page):
    for words in COMMAND.findall((ROOT / page).read_text()):
        given = shlex.split(re.sub(r"<[^>]*>|…", "X", words.replace("\\", "")).split(")")[0])
        arguments, more = parser().parse_known_args(given)
        assert not more, words
        for name in getattr(arguments, "notebook", None) or ():
            if given[0] == "report":
                find_preset(find_notebook(name, ROOT).stem, arguments.preset, ROOT)
        if given[0] == "run":
            assert find_notebook(arguments.notebook, ROOT)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A place that looks like this checkout, to which blocks may write."""
    for path in ROOT.iterdir():
        if path.name not in (".git", "site", "build"):
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "measured"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT / "lib"), os.environ.get("PYTHONPATH")))))
    return tmp_path


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks(page)) for page in RUN])
def test_blocks_run_one_after_the_other(page, checkout):
    names, printed = {}, ""
    for block in blocks(page):
        if file := block.about("file"):
            (checkout / file).write_text(block.text)
        elif block.language == "text":
            assert printed.strip() == block.text.strip(), block
        elif block.runs and block.language == "python":
            exec(compile("\n" * block.line + block.text, page, "exec"), names)
        elif block.runs:
            command = ["bash", "-euo", "pipefail", "-c", block.text]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            printed = done.stdout.replace(f"{checkout}/measured", "…/data")


@pytest.mark.slow
def test_the_site_of_the_documentation_is_built_without_a_warning_and_loads_nothing(tmp_path):
    options = ["-W", "--keep-going", "-q", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    loads = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?:https?:)?//[^>]*>")
    assert [(page.name, found) for page in pages for found in loads.findall(page.read_text())] == []
