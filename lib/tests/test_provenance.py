"""What a page says of its runs."""

from nbformat.v4 import new_code_cell, new_notebook, new_output

from wanbench.publish.cells import read_cells
from wanbench.publish.provenance import MIME, provenance
from wanbench.runs import Run, claim

TEST = {"test_id": "0001-a-b", "attempt": 1, "round": 1, "from_region": "aws:a", "to_region": "aws:b"}
LAB = {"kind": "local <lab>", "tools": {"iperf3": "3.12", "ping": "iputils 20221126"}}


def run(folder, *, finished):
    plan = {
        "tests": [{"id": "0001-a-b", "round": 1, "from_region": "aws:a", "to_region": "aws:b"}],
        "experiments": [],
        "seed": 0,
    }
    with claim(folder, campaign="c", parameters={}, plan=plan, lab_settings={}) as writer:
        writer.start(LAB)
        failed = {"event": "test-failed", **TEST, "experiment": "ping", "reason": "r", "files": []}
        writer.record({"event": "test-started", **TEST}, failed)
        again = {**TEST, "attempt": 2}
        writer.record({"event": "test-started", **again}, {"event": "test-finished", **again, "files": []})
        if finished:
            return writer.finish()
    return Run.open(writer.folder)


def test_facts_of_a_finished_run(tmp_path):
    made = run(tmp_path, finished=True)
    (facts,) = provenance(made).runs
    assert facts["run_id"] == made.run_id and facts["campaign"] == "c"
    assert facts["tests"] == "attempts: 1 done, 1 failed" and facts["tools"] == LAB["tools"]
    assert facts["started_at_utc"] == made.manifest["started_at_utc"]
    assert facts["ended_at_utc"] == made.manifest["ended_at_utc"]
    assert facts["commit"] == made.manifest["git_commit"]


def test_an_unfinished_run_says_so(tmp_path):
    (facts,) = provenance(run(tmp_path, finished=False)).runs
    assert facts["ended_at_utc"] is None and facts["started_at_utc"] is not None


def test_shows_itself_escaped(tmp_path):
    shown = provenance(run(tmp_path, finished=True))._repr_mimebundle_()
    assert "local &lt;lab&gt;" in shown["text/html"] and "attempts: 1 done, 1 failed" in shown["text/plain"]
    assert len(shown[MIME]["runs"]) == 1


def test_reaches_the_page(tmp_path):
    bundle = provenance(run(tmp_path, finished=True))._repr_mimebundle_()
    cell = new_code_cell("provenance(run)", outputs=[new_output("execute_result", data=bundle, execution_count=1)])
    parts = read_cells(new_notebook(cells=[cell]))
    assert parts.parts == [] and parts.runs == bundle[MIME]["runs"]
