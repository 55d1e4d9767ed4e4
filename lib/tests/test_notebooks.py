"""House rules of the committed notebooks and presets, and that the rules notice what they should."""

import ast
import copy
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from example_site import CELLS, make_checkout, notebook

from wanbench.errors import WanbenchError
from wanbench.folders import ROOT_MARK
from wanbench.publish.cells import FormulaError, TextRenderer, mathml
from wanbench.publish.notebooks import notebook_paths, optional_section, read_notebook
from wanbench.publish.parameters import check_notebook, declared_parameters, preset_paths, read_parameters

ROOT = Path(__file__).parents[2]
LONGEST_CELL = 15
LONGEST_PARAMETERS = 30
"""One line each, with its comment: read as a table."""
EXTRA_KEYS = "metadata.papermill cell.metadata.papermill metadata.language_info.version"


class CheckedText(TextRenderer):
    """Renders text, and remembers the formulas that cannot be shown."""

    def __init__(self):
        super().__init__()
        self.faults = []

    def inline_math(self, body):
        return self._checked(body)

    def block_math(self, body):
        return self._checked(body)

    def _checked(self, body):
        try:
            mathml(body)
        except FormulaError as error:
            self.faults.append(str(error))
        return ""


def faults_of_code(source, longest=LONGEST_CELL):
    """What is wrong with one code cell."""
    faults = []
    lines = source.rstrip().count("\n") + 1
    if lines > longest:
        faults.append(f"has {lines} lines; {longest} are allowed")
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError as error:
        return [*faults, f"is not plain Python: {error.msg}"]
    for kind, word in ((ast.FunctionDef, "def"), (ast.AsyncFunctionDef, "def"), (ast.ClassDef, "class")):
        if any(isinstance(node, kind) for node in nodes):
            faults.append(f"holds a {word}; logic belongs in lib/")
    if sum(isinstance(node, (ast.For, ast.While)) for node in nodes) > 1:
        faults.append("holds more than one loop; logic belongs in lib/")
    return faults


def faults_of(path):
    """What is wrong with a notebook, as sentences."""
    content = json.loads(path.read_text())
    faults = []
    if (content["nbformat"], content["nbformat_minor"] >= 5) != (4, True):
        faults.append("is not in format 4.5, in which cells have ids")
    notebook = read_notebook(path)
    text = CheckedText()
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown":
            text.html_of(cell.source)
        elif cell.cell_type == "code":
            is_parameters = "parameters" in cell.metadata.get("tags", [])
            longest = LONGEST_PARAMETERS if is_parameters else LONGEST_CELL
            faults += [f"cell {number} {fault}" for fault in faults_of_code(cell.source, longest)]
            if cell.outputs or cell.execution_count is not None:
                faults.append(f"cell {number} has outputs or a number")
    faults += text.faults
    if not notebook.cells or not notebook.cells[0].source.startswith("# "):
        faults.append("does not begin with its title")
    if not notebook.cells or not notebook.cells[-1].source.rstrip().split("\n")[-1].startswith("provenance("):
        faults.append("does not end with provenance(...)")
    if sum("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells) != 1:
        faults.append("has not exactly one cell tagged parameters")
    try:
        declared = declared_parameters(notebook, path.name)
        faults += [f"parameter {one.name} has no comment" for one in declared.values() if not one.comment]
    except WanbenchError as error:
        faults.append(str(error))
    return faults


def not_stripped(paths):
    """Those of these notebooks that nbstripout would change."""
    arguments = [sys.executable, "-m", "nbstripout", "--verify", "--keep-id", "--extra-keys", EXTRA_KEYS]
    done = subprocess.run([*arguments, *map(str, paths)], capture_output=True, text=True)
    changed = [path for path in paths if f"would have stripped {path}\n" in done.stdout]
    assert done.returncode == bool(changed), done.stderr
    return changed


def faults_of_presets(root):
    """Presets that do not fit their notebook, and folders of presets without one."""
    notebooks = {path.stem: path for path in notebook_paths(root)}
    folders = [path.name for path in sorted((root / ROOT_MARK).iterdir()) if path.is_dir()]
    faults = [f"{ROOT_MARK}/{name} belongs to no notebook" for name in folders if name not in notebooks]
    for name in sorted(set(folders) & set(notebooks)):
        for path in preset_paths(name, root).values():
            try:
                check_notebook(notebooks[name], read_parameters(path), str(path))
            except WanbenchError as error:
                faults.append(str(error))
    return faults


# The committed notebooks


@pytest.mark.parametrize("path", notebook_paths(ROOT), ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(path):
    assert faults_of(path) == []
    cells = read_notebook(path).cells
    assert not [cell.id for cell in cells if cell.cell_type == "code" and "print(" in cell.source]


def test_the_survey_needs_no_emulated_links():
    path = ROOT / "notebooks/02-intercloud-throughput.ipynb"
    cells = read_notebook(path).cells
    [start] = [k for k, cell in enumerate(cells) if "tcp_verdicts.of_run" in cell.source]
    section = optional_section(read_notebook(path), start)
    assert section is not None
    using = [k for k, cell in enumerate(cells) if cell.cell_type == "code" and "recovered" in cell.source]
    assert set(using) <= set(section)
    # Whether the network was emulated is said from the run.
    assert not [cell.id for cell in cells if cell.cell_type == "markdown" and "emulated" in cell.source]


@pytest.mark.skipif(not notebook_paths(ROOT), reason="no notebooks")
def test_notebooks_hold_nothing_that_running_leaves():
    assert not_stripped(notebook_paths(ROOT)) == []


@pytest.mark.skipif(not (ROOT / ROOT_MARK).is_dir(), reason="no presets")
def test_every_preset_fits_its_notebook():
    assert faults_of_presets(ROOT) == []


# The rules themselves


@pytest.fixture
def good(tmp_path):
    return make_checkout(tmp_path / "top", {"00-good": CELLS})


def changed(good, change, name="00-good"):
    content = copy.deepcopy(read_notebook(good / "notebooks/00-good.ipynb"))
    change(content)
    path = good / f"notebooks/{name}.ipynb"
    nbformat.write(content, path)
    return path


def test_a_good_notebook_has_no_faults(good):
    assert faults_of(good / "notebooks/00-good.ipynb") == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f():\n    pass", "holds a def"),
        ("async def f():\n    pass", "holds a def"),
        ("class A:\n    pass", "holds a class"),
        ("for a in b:\n    pass\nfor a in c:\n    pass", "more than one loop"),
        ("\n".join(["x = 1"] * 16), "has 16 lines"),
        ("!ls", "is not plain Python"),
        ("%time x", "is not plain Python"),
    ],
)
def test_bad_code_is_noticed(source, fault):
    assert any(fault in found for found in faults_of_code(source))


def test_good_code_is_not_noticed():
    assert faults_of_code("\n".join(["x = 1"] * 15)) == []
    assert faults_of_code("for a in [b for b in c]:\n    print(a)") == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda nb: nb.cells.pop(0), "does not begin with its title"),
        (lambda nb: nb.cells.pop(), "does not end with provenance"),
        (lambda nb: nb.cells.pop(1), "not exactly one cell tagged"),
        (lambda nb: nb.cells[1].update(source="x = 1"), "parameter x has no comment"),
        (lambda nb: nb.cells[1].update(source="x = y  # why"), "'y' is not a literal"),
        (lambda nb: nb.cells[3].update(execution_count=1), "cell 4 has outputs or a number"),
        (lambda nb: nb.cells[2].update(source=r"$\nosuch{x}$"), "nosuch"),
        (lambda nb: nb.update(nbformat_minor=4), "not in format 4.5"),
    ],
)
def test_bad_notebooks_are_noticed(good, change, fault):
    assert any(fault in found for found in faults_of(changed(good, change)))


def test_what_running_leaves_is_noticed_and_nothing_else(good):
    leave = {
        "outputs": lambda nb: nb.cells[3].outputs.append(nbformat.v4.new_output("stream", text="x")),
        "papermill": lambda nb: nb.metadata.update(papermill={"duration": 1}),
        "status": lambda nb: nb.cells[3].metadata.update(papermill={"status": "completed"}),
        "version": lambda nb: nb.metadata.update(language_info={"name": "python", "version": "3.11"}),
    }
    paths = [changed(good, change, name) for name, change in leave.items()]
    assert not_stripped([good / "notebooks/00-good.ipynb", *paths]) == paths


def stripped(text):
    script = [sys.executable, "-S", str(ROOT / "scripts/strip-outputs.py")]
    return subprocess.run(script, input=text.encode(), capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize("path", notebook_paths(ROOT), ids=lambda path: path.stem)
def test_git_sees_no_change_in_a_notebook_that_has_run(path):
    committed = path.read_text("utf-8")
    assert stripped(committed) == committed
    run = nbformat.reads(committed, 4)
    run.metadata.update(papermill={"duration": 1}, language_info={"name": "python", "version": "3.11", "mimetype": "x"})
    for number, cell in enumerate(run.cells):
        if cell.cell_type == "code":
            cell.outputs.append(nbformat.v4.new_output("stream", text="x"))
            cell.update(execution_count=number, metadata=cell.metadata | {"execution": {}, "papermill": {}})
    assert stripped(nbformat.writes(run)) == committed


def test_git_gets_what_is_no_notebook_as_it_is():
    assert stripped("{") == "{" and stripped("[]") == "[]"


def test_bad_presets_are_noticed(good):
    for name, text in {"00-good/a": "n_points: 3", "00-good/b": "n_point: 3", "01-none/a": ""}.items():
        path = good / ROOT_MARK / f"{name}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = faults_of_presets(good)
    assert len(found) == 2
    assert found[0] == "papermill-params/01-none belongs to no notebook"
    assert "b.yml for 00-good.ipynb: unknown parameter 'n_point'" in found[1]


def test_notebooks_of_the_example_are_written_whole():
    assert [cell.cell_type for cell in notebook(CELLS).cells].count("code") == 8
