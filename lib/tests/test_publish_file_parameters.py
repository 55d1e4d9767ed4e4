"""Parameters that name files: found from where a command is typed, or refused with the places that were tried."""

import re

import nbformat
import pytest
from example_site import make_checkout, notebook

from wanbench import cli
from wanbench.errors import ParameterError
from wanbench.publish import jobs as jobs_of
from wanbench.publish.execute import execute
from wanbench.publish.parameters import file_hashes, resolve_paths
from wanbench.publish.site import sources_hash

PARAMETERS = "workload: str | None = None  # a workload file\ndriver = ''\nexternal: dict = {}\nn_points = 1"
READS = [
    ("parameters", PARAMETERS),
    ("code", "from pathlib import Path\n\nprint(Path(workload).read_text(), Path(driver).read_text())"),
]
DECLARED = ("workload", "driver", "external", "n_points")


@pytest.fixture
def places(tmp_path):
    """The notebook of a checkout, and the folder where a user stands: elsewhere, with a workload file in it."""
    top = make_checkout(tmp_path / "top", {"01-a": READS})
    here = tmp_path / "here"
    (here / "loads").mkdir(parents=True)
    (here / "loads" / "fan-out.yaml").write_text("topics: 1\n")
    (top / "loads").mkdir()
    (top / "loads" / "ours.yaml").write_text("topics: 2\n")
    return top / "notebooks" / "01-a.ipynb", here, top


def found(places, given, source=""):
    path, here, top = places
    return resolve_paths(given, DECLARED, path, [here, top], top, source)


def test_a_path_leads_to_its_file_from_the_notebooks_folder(places):
    _, here, top = places
    assert found(places, {"workload": "loads/fan-out.yaml"}) == {"workload": str(here / "loads/fan-out.yaml")}
    inside = {"workload": "../loads/ours.yaml"}
    assert found(places, {"workload": "loads/ours.yaml"}) == inside, "the checkout comes second"
    assert found(places, {"workload": "../top/loads/ours.yaml"}) == inside
    assert found(places, {"workload": str(top / "loads/ours.yaml")}) == inside, "the same on every machine"


def test_paths_are_found_in_lists_and_at_any_depth_and_nothing_else_changes(places):
    given = {
        "driver": "",
        "workload": ["loads/fan-out.yaml", "loads/ours.yaml"],
        "external": {"far": {"authority_file": "loads/ours.yaml", "user": "loads/ours.yaml", "key_file": None}},
        "n_points": 3,
        "workloads": "of a notebook that has no such parameter",
    }  # fmt: skip
    assert found(places, given) == given | {
        "workload": [str(places[1] / "loads/fan-out.yaml"), "../loads/ours.yaml"],
        "external": {"far": {"authority_file": "../loads/ours.yaml", "user": "loads/ours.yaml", "key_file": None}},
    }
    assert resolve_paths({"workload": "x"}, ["n_points"], *places[:1], [places[1]], places[2], "") == {"workload": "x"}


def test_a_file_that_is_not_there_is_named_with_every_place_that_was_tried(places):
    _, here, top = places
    message = (
        f"my.yml: parameter 'workload' is 'fan-in.yaml', but there is no file {here}/fan-in.yaml or {top}/fan-in.yaml; "
        "a relative path starts in the working directory."
    )
    with pytest.raises(ParameterError, match=re.escape(message)):
        found(places, {"workload": "fan-in.yaml"}, "my.yml")
    with pytest.raises(ParameterError, match=r"there is no file /nowhere/x\.yaml\.$"):
        found(places, {"workload": "/nowhere/x.yaml"})
    with pytest.raises(ParameterError, match="is 'loads'"):
        found(places, {"workload": "loads"})


def test_a_page_is_out_of_date_once_a_file_has_changed(places):
    path, _, top = places
    given = found(places, {"workload": "loads/ours.yaml"})
    before = sources_hash(path, given, [], top)
    assert sources_hash(path, given, [], top) == before
    (top / "loads/ours.yaml").write_text("topics: 3\n")
    assert sources_hash(path, given, [], top) != before
    (top / "loads/ours.yaml").unlink()
    assert file_hashes(given, path) == ["no workload"]


def test_the_command_line_finds_the_file_where_it_is_typed(places, monkeypatch, capsys):
    _, here, top = places
    monkeypatch.setattr(cli, "root", lambda: top)
    monkeypatch.setattr(jobs_of, "root", lambda: top)
    monkeypatch.chdir(here / "loads")
    asked = []
    monkeypatch.setattr(cli, "_publish", lambda jobs, *_, **__: asked.extend(jobs) or 0)
    assert cli.main(["run", "01", "-p", "workload=fan-out.yaml"]) == 0
    [job] = asked
    assert job.given == {"workload": str(here / "loads/fan-out.yaml")}
    assert "workload = 'fan-out.yaml'" in job.remark
    (here / "mine.yml").write_text("workload: fan-out.yaml\n")
    assert cli.main(["run", "01", "-f", "../mine.yml"]) == 0 and asked[1].given == job.given
    (top / "papermill-params/01-a").mkdir()
    (top / "papermill-params/01-a/quick.yml").write_text("workload: loads/ours.yaml\n")
    assert cli.main(["report"]) == 0 and asked[2].given == {"workload": "../loads/ours.yaml"}
    assert cli.main(["run", "01", "-p", "workload=nothing.yaml"]) == 2 and len(asked) == 3
    assert f"there is no file {here}/loads/nothing.yaml" in capsys.readouterr().err


def test_a_kernel_reads_files_of_the_user_and_of_the_checkout(places, tmp_path):
    path, _, _ = places
    nbformat.write(notebook(READS), path)
    given = found(places, {"workload": "loads/fan-out.yaml", "driver": "loads/ours.yaml"})
    ran = execute(path, given, tmp_path / "out.ipynb")
    assert ran.notebook.cells[-1].outputs[0].text.split() == ["topics:", "1", "topics:", "2"]
