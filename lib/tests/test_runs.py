"""The run folder: what is written can be read, what was changed is found, paths stay inside."""

import hashlib
import json

import pytest
from run_folders import PLAN, A, C, claimed, finish, lines, measured, rewrite, start

from wanbench import folders, tables
from wanbench.errors import MissingDataError, ParameterError, RawDataError
from wanbench.runs import Run, find, journal, write_raw


def test_round_trip(tmp_path):
    run = measured(tmp_path)
    assert run.finished and run.folder.parent == tmp_path / "raw" / "c1"
    assert run.parameters == {"preset": "quick"} and run.plan == PLAN
    assert run.links() == [{"delay_ms": 1}]
    (file,) = run.raw_files()
    assert file["test_id"] == "0001-a-b" and file["outcome"] == "done" and file["from_region"] == A
    assert (run.folder / file["path"]).read_bytes() == b"64 bytes"
    assert str(run.first_output("ping")).endswith("\n64 bytes")
    with pytest.raises(MissingDataError, match="no raw file of iperf3"):
        run.first_output("iperf3")
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest == run.manifest
    assert set(manifest["files"]) == {"journal.jsonl", "ping/0001-a-b.1.txt"}
    assert manifest["started_at_utc"] < manifest["ended_at_utc"]
    assert manifest["tools"] == {"ping": "1"} and manifest["wanbench_version"]
    assert manifest["git_commit"] is None or len(manifest["git_commit"]) == 40
    run.verify()
    assert not list(run.folder.rglob("*unfinished*"))


def test_parameters_name_the_settings_that_were_swept():
    [run] = find(folders.samples_folder(), "compression-levels")
    swept = run.parameters["swept"]
    assert sorted(swept["load.compression"]) == ["gzip", "lz4", "none", "zstd"]
    assert [["compression.gzip.level", "1"]] in swept["load.producer_settings"] and "load.acks" not in swept
    [survey] = find(folders.samples_folder(), "survey-quick")
    assert sorted(survey.parameters) == ["loss", "path_inflation", "rate_bps"]  # its tests differ by their pairs alone


def test_the_table_of_tests_is_valid(tmp_path):
    with claimed(tmp_path) as writer:
        writer.start({"kind": "scripted"})
        writer.record({"event": "round-started", "round": 1}, start(), start("0002-b-a", ends=(C, "aws:x")))
        failed = {"event": "test-failed", "test_id": "0002-b-a", "attempt": 1, "experiment": "ping"}
        writer.record({**failed, "reason": "no route", "files": []})
        writer.record(start("0002-b-a", 2, ends=(C, "aws:x")))
        writer.record(finish(writer, "0002-b-a", 2))
    run = Run.open(writer.folder)
    table = tables.validate("tests", run.tests())
    assert list(table["outcome"]) == ["interrupted", "failed", "done"]
    assert list(table["attempt"]) == [1, 1, 2]
    assert table["reason"].tolist()[1] == "no route" and table["failed_experiment"].tolist()[1] == "ping"
    assert table["ended_at_utc"].isna().tolist() == [True, False, False]
    assert not run.finished and run.manifest is None


def test_a_run_shows_itself_escaped(tmp_path):
    run = measured(tmp_path)
    assert "1 of 1 done, 0 failed" in str(run) and "scripted" in str(run) and run.run_id in repr(run)
    hostile = json.loads(lines(run)[0])
    hostile["campaign"] = "<script>"
    rewrite(run, [json.dumps(hostile), *lines(run)[1:]])
    shown = Run.open(run.folder)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "not finished" in shown


@pytest.mark.parametrize(
    "path", ["../../secret", "/etc/passwd", "ping/../../x", "", "a\\b", "ping/\0", "ping/\ud800", 7, None]
)
def test_paths_stay_inside_the_run_folder(tmp_path, path):
    run = measured(tmp_path)
    new = lines(run)
    event = json.loads(new[3])
    event["files"][0]["path"] = path
    new[3] = json.dumps(event)
    rewrite(run, new)
    with pytest.raises(RawDataError, match=r"journal.jsonl:4"):
        Run.open(run.folder)


def test_a_link_out_of_the_run_folder_is_refused(tmp_path):
    run = measured(tmp_path)
    file = run.folder / "ping/0001-a-b.1.txt"
    content = file.read_bytes()
    (tmp_path / "outside.txt").write_bytes(content)
    file.unlink()
    file.symlink_to(tmp_path / "outside.txt")
    with pytest.raises(RawDataError, match="inside the run folder"):
        Run.open(run.folder)


def test_schema_versions_are_checked(tmp_path):
    run = measured(tmp_path)
    manifest = run.folder / "manifest.json"
    manifest.write_text(json.dumps({**run.manifest, "schema_version": 99}))
    with pytest.raises(RawDataError, match="schema version 1, found '99'"):
        Run.open(run.folder)
    manifest.unlink()
    first = json.loads(lines(run)[0])
    rewrite(run, [json.dumps({**first, "schema_version": 2}), *lines(run)[1:]])
    with pytest.raises(RawDataError, match=r"journal.jsonl:1: expected schema version 1"):
        Run.open(run.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}', '{"schema_version": 1, "files": []}'])
def test_a_damaged_manifest_is_an_error(tmp_path, text):
    run = measured(tmp_path)
    (run.folder / "manifest.json").write_text(text)
    with pytest.raises(RawDataError, match=r"manifest.json: expected"):
        Run.open(run.folder)


def test_verify_names_the_changed_file(tmp_path):
    run = measured(tmp_path)
    file = run.folder / "ping/0001-a-b.1.txt"
    file.write_bytes(b"65 bytes")
    with pytest.raises(RawDataError, match=r"0001-a-b.1.txt: expected SHA-256"):
        run.verify()
    run.manifest["files"]["ping/0001-a-b.1.txt"] = hashlib.sha256(b"65 bytes").hexdigest()
    with pytest.raises(RawDataError, match=r"manifest.json: expected ping/0001-a-b.1.txt with SHA-256"):
        run.verify()
    file.unlink()
    with pytest.raises(RawDataError, match=r"0001-a-b.1.txt.*'no file'"):
        Run.open(run.folder).verify()


def test_verify_sees_a_changed_journal(tmp_path):
    run = measured(tmp_path)
    new = lines(run)
    late = json.dumps({"event": "interrupted", "at_utc": journal.now_utc(), "reason": ""})
    rewrite(run, [*new[:-1], late, new[-1]], keep_manifest=True)
    with pytest.raises(RawDataError, match=r"journal.jsonl: expected SHA-256"):
        Run.open(run.folder).verify()


def test_a_journal_that_was_cut_is_not_taken_for_the_finished_run(tmp_path):
    run = measured(tmp_path)
    rewrite(run, lines(run)[:-2], keep_manifest=True)
    with pytest.raises(RawDataError, match=r"journal.jsonl: expected SHA-256 .*, as when the run finished"):
        Run.open(run.folder)


def test_a_test_whose_direction_was_exchanged_is_noticed(tmp_path):
    run = measured(tmp_path)
    new = lines(run)
    event = json.loads(new[2])
    new[2] = json.dumps({**event, "from_region": event["to_region"], "to_region": event["from_region"]})
    rewrite(run, new, keep_manifest=True)
    with pytest.raises(RawDataError, match=r"journal.jsonl: expected SHA-256"):
        find(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("git_commit", "0" * 40),
        ("ended_at_utc", "2026-01-01T00:00:00+00:00"),
        ("lab", {"kind": "aws"}),
        ("parameters", None),
        ("note", "more"),
    ],
)
def test_every_field_of_the_manifest_is_checked_against_the_journal(tmp_path, field, value):
    run = measured(tmp_path)
    (run.folder / "manifest.json").write_text(json.dumps({**run.manifest, field: value}))
    with pytest.raises(RawDataError, match=f"expected the values in the journal, found 'another {field}'"):
        Run.open(run.folder)


def test_verify_names_a_file_that_was_added(tmp_path):
    run = measured(tmp_path)
    (run.folder / ".ipynb_checkpoints").mkdir()
    for hidden in (".note", ".ipynb_checkpoints/note.txt"):
        (run.folder / hidden).touch()
    run.verify()
    (run.folder / "ping/0002-a-b.1.txt").touch()
    with pytest.raises(RawDataError, match=r"0002-a-b.1.txt: expected no file"):
        run.verify()


def test_verify_works_without_a_manifest(tmp_path):
    run = measured(tmp_path)
    (run.folder / "manifest.json").unlink()
    Run.open(run.folder).verify()
    (run.folder / "ping/0001-a-b.1.txt").write_bytes(b"")
    with pytest.raises(RawDataError, match="SHA-256"):
        Run.open(run.folder).verify()


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="not a run folder"):
        Run.open(tmp_path)


def test_files_of_interrupted_attempts_are_listed_but_not_counted(tmp_path):
    with claimed(tmp_path) as writer:
        writer.start({"kind": "scripted"})
        writer.record(start())
        finish(writer)
    with claimed(tmp_path) as writer:
        assert [a.outcome for a in writer.before.attempts()] == ["interrupted"]
        writer.start({"kind": "scripted"})
        writer.record(start(attempt=2))
        writer.record(finish(writer, attempt=2))
        run = writer.finish()
    assert [file["path"] for file in run.raw_files()] == ["ping/0001-a-b.2.txt"]
    assert "ping/0001-a-b.1.txt" in run.manifest["files"]


@pytest.mark.parametrize(
    ("reason", "by_machine"),
    [
        ("ping on a/0 ended with status 2: ping: write error: No space left on device", True),
        ("iperf3 on a/0 ended with status 127: iperf3: not found", True),
        ("iperf3 on a/0 ended with status 1: unable to create a new stream: Too many open files", True),
        ("iperf3 on a/0 ended with status 1: unable to connect: Connection refused", False),
        ("ping on a/0 did not end within 127 s and was stopped", False),
    ],
)
def test_what_the_machine_is_blamed_for(tmp_path, reason, by_machine):
    with claimed(tmp_path) as writer:
        writer.start({"kind": "scripted"})
        failed = {"event": "test-failed", "test_id": "0001-a-b", "attempt": 1, "experiment": "ping"}
        writer.record(start(), {**failed, "reason": reason, "files": []})
    [attempt] = Run.open(writer.folder).failures().values()
    assert attempt.by_machine is by_machine


def test_a_plan_that_is_none_does_not_keep_a_run_from_showing_itself(tmp_path):
    run = measured(tmp_path)
    new = lines(run)
    new[0] = json.dumps({**json.loads(new[0]), "plan": {"tests": 3}})
    rewrite(run, new)
    assert "1 of 0 done" in str(Run.open(run.folder))


def test_write_raw_never_overwrites(tmp_path):
    now = journal.now_utc()
    file = write_raw(tmp_path, "ping", "a.txt", b"x", started_at_utc=now, ended_at_utc=now)
    with pytest.raises(ParameterError, match="never overwritten"):
        write_raw(tmp_path, "ping", "a.txt", b"y", started_at_utc=now, ended_at_utc=now)
    assert (tmp_path / "ping/a.txt").read_bytes() == b"x" and file.bytes == 1
    assert [path.name for path in (tmp_path / "ping").iterdir()] == ["a.txt"]


def test_a_command_is_recorded_without_the_place_of_the_checkout(tmp_path):
    top = folders.root()
    arguments = [f"{top}/.venv/bin/python", f"-XX:SharedArchiveFile={top}/.kafka/broker.jsa", "/tmp/elsewhere"]
    file = write_raw(
        tmp_path, "ping", "a.txt", b"", command=arguments, started_at_utc="2026-01-01T00:00:00Z", ended_at_utc=""
    )
    assert file.command == ("./.venv/bin/python", "-XX:SharedArchiveFile=./.kafka/broker.jsa", "/tmp/elsewhere")
