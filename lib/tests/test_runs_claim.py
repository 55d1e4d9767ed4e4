"""Which run a call gets: the finished one, the interrupted one, or a new one; and one holder at a time."""

import json
import shutil

import pytest
from run_folders import PLAN, TEST, claimed, lines, measured, rewrite

from wanbench import runs
from wanbench.errors import ParameterError, RawDataError
from wanbench.runs import Run, RunHeldError


def test_the_same_parameters_find_the_finished_run(tmp_path):
    run = measured(tmp_path)
    found = claimed(tmp_path)
    assert isinstance(found, Run) and found.folder == run.folder


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"preset": "full"}},
        {"campaign": "c2"},
        {"plan": {**PLAN, "seed": 2}},
        {"plan": {**PLAN, "experiments": []}},
        {"lab_settings": {"sysctls": {"a": "b"}}},
        {"fresh": True},
    ],
)
def test_anything_else_is_a_new_run(tmp_path, changes):
    run = measured(tmp_path)
    with claimed(tmp_path, **changes) as writer:
        assert writer.before is None and writer.folder != run.folder


def test_the_whole_hash_decides_not_the_part_in_the_name(tmp_path):
    run = measured(tmp_path)
    first = json.loads(lines(run)[0])
    other = first["identity_sha256"][:8] + "0" * 56
    rewrite(run, [json.dumps({**first, "identity_sha256": other}), *lines(run)[1:]], keep_manifest=True)
    with claimed(tmp_path) as writer:
        assert writer.before is None and writer.folder != run.folder


def test_expectations_do_not_make_another_run(tmp_path):
    run = measured(tmp_path)
    other = {**PLAN, "expected_s": 1.25, "tests": [{**TEST, "rtt_ms": 81.0}]}
    assert claimed(tmp_path, plan=other).folder == run.folder


def test_the_newest_run_decides(tmp_path):
    run = measured(tmp_path)
    with claimed(tmp_path, fresh=True) as writer:
        writer.start({"kind": "scripted"})
    with claimed(tmp_path) as again:
        assert again.folder == writer.folder != run.folder
        again.start({"kind": "scripted"})
        again.finish()
    assert claimed(tmp_path).folder == writer.folder


def test_a_run_is_held_by_one(tmp_path):
    with claimed(tmp_path) as writer:
        with pytest.raises(RunHeldError, match="Another process is measuring into"):
            claimed(tmp_path)
        writer.start({"kind": "scripted"})
        with pytest.raises(RunHeldError):
            claimed(tmp_path)
        with claimed(tmp_path, fresh=True) as other:
            assert other.folder != writer.folder
    with claimed(tmp_path):
        pass


def test_a_folder_in_which_nothing_was_written_goes(tmp_path):
    with claimed(tmp_path) as writer:
        folder = writer.folder
    assert not folder.exists()


def test_a_folder_left_before_its_first_line_is_used(tmp_path):
    with claimed(tmp_path) as writer:
        (writer.folder / "journal.jsonl").write_bytes(b'{"event": "run-st')
    with claimed(tmp_path) as again:
        assert again.folder == writer.folder and again.before is None
        again.start({"kind": "scripted"})
        assert again.finish().finished
    assert len(runs.find(tmp_path)) == 1


def test_a_damaged_run_is_not_resumed(tmp_path):
    run = measured(tmp_path)
    (run.folder / "manifest.json").unlink()
    (run.folder / "ping/0001-a-b.1.txt").write_bytes(b"other")
    with pytest.raises(RawDataError, match="SHA-256"):
        claimed(tmp_path)
    shutil.copy(run.folder / "journal.jsonl", tmp_path)
    (run.folder / "ping/0001-a-b.1.txt").write_bytes(b"64 bytes")
    with claimed(tmp_path) as writer:
        assert writer.folder == run.folder


def test_killed_between_last_line_and_manifest(tmp_path):
    run = measured(tmp_path)
    (run.folder / "manifest.json").unlink()
    (run.folder / ".manifest.json.unfinished").write_text("{")
    (run.folder / "ping/.0002-b-a.1.txt.unfinished").write_text("half")
    with claimed(tmp_path) as writer:
        again = writer.finish()
    assert again.finished and len(again.events()) == len(run.events())
    assert set(again.manifest["files"]) == {"journal.jsonl", "ping/0001-a-b.1.txt"}
    assert not list(run.folder.rglob("*unfinished"))


@pytest.mark.parametrize("campaign", ["", "../x", "a/b", ".hidden", "x" * 65, "a b", None])
def test_campaign_names_are_plain(tmp_path, campaign):
    with pytest.raises(ParameterError, match="Campaign"):
        claimed(tmp_path, campaign=campaign)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object(), b"x"])
def test_parameters_are_json(tmp_path, value):
    with pytest.raises(ParameterError, match="JSON"):
        claimed(tmp_path, parameters={"x": value})


def test_find(tmp_path):
    measured(tmp_path)
    with claimed(tmp_path, campaign="c2") as writer:
        writer.start({"kind": "scripted"})
        writer.finish()
    assert [run.campaign for run in runs.find(tmp_path, "c1")] == ["c1"]
    with pytest.raises(ParameterError, match="campaign is 'c3'"):
        runs.find(tmp_path, "c3")
    assert len(runs.find(tmp_path)) == 2
