"""The run folder: what is written can be read, what was torn is told, what was changed is found."""

import json
import os
import shutil
import threading

import pytest

from wanbench import runs, tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.runs import Run, RunHeldError, RunWriter, claim, journal, overlaps, write_raw

A, B, C = "aws:eu-west-1", "gcp:us-east1", "azure:eastus"
TEST = {"id": "0001-a-b", "round": 1, "from_region": A, "to_region": B, "rtt_ms": 80.0}
PLAN = {"tests": [TEST], "experiments": [{"name": "ping", "count": 5}], "seed": 1, "n_rounds": 1}


def claimed(folder, **changes):
    arguments = {"campaign": "c1", "parameters": {"preset": "quick"}, "plan": PLAN, "lab_settings": {}}
    return claim(folder, **{**arguments, **changes})


def start(test_id="0001-a-b", attempt=1, round=1, ends=(A, B)):
    about = {"test_id": test_id, "attempt": attempt, "round": round}
    return {"event": "test-started", **about, "from_region": ends[0], "to_region": ends[1]}


def finish(writer, test_id="0001-a-b", attempt=1, text=b"64 bytes"):
    now = journal.now_utc()
    file = writer.keep("ping", f"{test_id}.{attempt}.txt", text, started_at_utc=now, ended_at_utc=now)
    return {"event": "test-finished", "test_id": test_id, "attempt": attempt, "files": [file.as_dict()]}


def measured(folder) -> Run:
    with claimed(folder) as writer:
        writer.start({"kind": "scripted", "tools": {"ping": "1"}, "links": [{"delay_ms": 1}]})
        writer.record({"event": "round-started", "round": 1}, start())
        writer.record(finish(writer))
        return writer.finish()


def lines(run: Run) -> list[str]:
    return (run.folder / "journal.jsonl").read_text().splitlines()


def rewrite(run: Run, new: list[str], *, keep_manifest=False) -> None:
    (run.folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in new))
    if not keep_manifest:
        (run.folder / "manifest.json").unlink(missing_ok=True)


def test_round_trip(tmp_path):
    run = measured(tmp_path)
    assert run.finished and run.folder.parent == tmp_path / "raw" / "c1"
    assert run.parameters == {"preset": "quick"} and run.plan == PLAN
    assert run.links() == [{"delay_ms": 1}]
    (file,) = run.raw_files()
    assert file["test_id"] == "0001-a-b" and file["outcome"] == "done" and file["from_region"] == A
    assert (run.folder / file["path"]).read_bytes() == b"64 bytes"
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest == run.manifest
    assert set(manifest["files"]) == {"journal.jsonl", "ping/0001-a-b.1.txt"}
    assert manifest["started_at_utc"] < manifest["ended_at_utc"]
    assert manifest["tools"] == {"ping": "1"} and manifest["wanbench_version"]
    assert manifest["git_commit"] is None or len(manifest["git_commit"]) == 40
    run.verify()
    assert not list(run.folder.rglob("*unfinished*"))


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


@pytest.mark.parametrize("cut", [1, 7, -1])
def test_a_torn_last_line_is_told_and_counts_for_nothing(tmp_path, cut):
    run = measured(tmp_path)
    path = run.folder / "journal.jsonl"
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    torn = whole[last:-1] if cut == -1 else whole[last : last + cut]
    path.write_bytes(whole[:last] + torn)
    (run.folder / "manifest.json").unlink()
    found = Run.open(run.folder)
    assert found.torn == torn and len(found.events()) == len(run.events()) - 1
    with claimed(tmp_path) as writer:
        assert isinstance(writer, RunWriter) and writer.folder == run.folder
        writer.start({"kind": "scripted"})
        again = writer.finish()
    resumed = [event for event in again.events() if event["event"] == "resumed"]
    assert resumed[0]["torn"] == torn.decode() and again.torn == b"" and again.finished
    assert again.manifest["sessions"] == 2
    again.verify()


@pytest.mark.parametrize(
    "damage", ['{"event": "test-fin', "", "[]", "17", '"x"', "{}", '{"event": 3}', "[" * 100_000]
)
def test_a_torn_line_in_the_middle_is_an_error_with_its_number(tmp_path, damage):
    run = measured(tmp_path)
    rewrite(run, [*lines(run)[:2], damage, *lines(run)[2:]])
    with pytest.raises(RawDataError, match=r"journal.jsonl:3: expected a JSON object"):
        Run.open(run.folder)


@pytest.mark.parametrize(
    "change, expected",
    [
        ({"attempt": "1"}, "'attempt' of type int"),
        ({"attempt": True}, "'attempt' of type int"),
        ({"round": None}, "'round' of type int"),
        ({"from_region": 5}, "'from_region' of type str"),
        ({"at_utc": "yesterday"}, "a time in UTC"),
        ({"at_utc": "2026-01-01T00:00:00"}, "a time in UTC"),
        ({"at_utc": None}, "'at_utc' of type str"),
        ({"at_utc": "2026-W01-1T00:00:00+00:00"}, "a time in UTC"),
        ({"attempt": -1}, "'attempt' from 0"),
        ({"round": 10**30}, "'round' from 0"),
        ({"to_region": "\ud800"}, "'to_region' in UTF-8"),
    ],
)
def test_events_are_checked(tmp_path, change, expected):
    run = measured(tmp_path)
    new = lines(run)
    new[2] = json.dumps({**json.loads(new[2]), **change})
    rewrite(run, new)
    with pytest.raises(RawDataError, match=f"journal.jsonl:3: .*{expected}"):
        Run.open(run.folder)


def test_an_event_of_a_later_version_is_passed_over(tmp_path):
    run = measured(tmp_path)
    rewrite(
        run, [*lines(run)[:1], json.dumps({"event": "moon", "at_utc": journal.now_utc()}), *lines(run)[1:]]
    )
    assert len(Run.open(run.folder).tests()) == 1


@pytest.mark.parametrize("which", [1, 2])
def test_a_test_ends_once_and_only_if_it_was_started(tmp_path, which):
    run = measured(tmp_path)
    new = lines(run)
    rewrite(run, [*new[:2], new[3], *new[2:]] if which == 1 else [*new[:4], new[3], *new[4:]])
    with pytest.raises(RawDataError, match="the end of a test that is started and not ended"):
        Run.open(run.folder)


def test_the_same_attempt_is_not_started_twice(tmp_path):
    run = measured(tmp_path)
    rewrite(run, [*lines(run)[:3], *lines(run)[2:]])
    with pytest.raises(RawDataError, match="not started before"):
        Run.open(run.folder)


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


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema_version": 1}', '{"schema_version": 1, "files": []}']
)
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
    file.unlink()
    with pytest.raises(RawDataError, match=r"0001-a-b.1.txt.*'no file'"):
        run.verify()


def test_verify_sees_a_changed_journal(tmp_path):
    run = measured(tmp_path)
    new = lines(run)
    late = json.dumps({"event": "interrupted", "at_utc": journal.now_utc(), "reason": ""})
    rewrite(run, [*new[:-1], late, new[-1]], keep_manifest=True)
    with pytest.raises(RawDataError, match=r"journal.jsonl: expected SHA-256"):
        Run.open(run.folder).verify()


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
        with pytest.raises(RunHeldError, match="is being measured by another process"):
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


@pytest.mark.parametrize("campaign", ["", "../x", "a/b", ".hidden", "x" * 65, "a b", None])
def test_campaign_names_are_plain(tmp_path, campaign):
    with pytest.raises(ParameterError, match="Campaign"):
        claimed(tmp_path, campaign=campaign)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object(), b"x"])
def test_parameters_are_json(tmp_path, value):
    with pytest.raises(ParameterError, match="JSON"):
        claimed(tmp_path, parameters={"x": value})


def test_many_threads_append_whole_lines(tmp_path):
    log = journal.Journal(tmp_path / "journal.jsonl")
    threads = [
        threading.Thread(
            target=lambda n=n: [
                log.append({"event": "interrupted", "reason": f"{n}-{k}" * 50}) for k in range(20)
            ]
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = journal.read(tmp_path / "journal.jsonl")
    assert len(found.events) == 160 and found.torn == b""
    assert len({event["reason"] for event in found.events}) == 160


def test_a_line_that_a_full_disk_takes_half_of_is_taken_back(tmp_path, monkeypatch):
    log, write, left = journal.Journal(tmp_path / "journal.jsonl"), os.write, [20]

    def full(file, data):
        if not left:
            raise OSError(28, "No space left on device")
        return write(file, data[: left.pop()])

    log.append({"event": "interrupted", "reason": "first"})
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(journal.os, "write", full)
        log.append({"event": "interrupted", "reason": "lost"})
    log.append({"event": "interrupted", "reason": "second"})
    log.close()
    found = journal.read(tmp_path / "journal.jsonl")
    assert [event["reason"] for event in found.events] == ["first", "second"] and not found.torn


def test_a_plan_that_is_none_does_not_keep_a_run_from_showing_itself(tmp_path):
    run = measured(tmp_path)
    new = lines(run)
    new[0] = json.dumps({**json.loads(new[0]), "plan": {"tests": 3}})
    rewrite(run, new)
    assert "1 of 0 done" in str(Run.open(run.folder))


def test_an_unknown_event_is_not_written(tmp_path):
    log = journal.Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ParameterError, match="'moon'"):
        log.append({"event": "interrupted", "reason": ""}, {"event": "moon"})
    log.close()
    assert os.path.getsize(tmp_path / "journal.jsonl") == 0


def test_write_raw_never_overwrites(tmp_path):
    now = journal.now_utc()
    file = write_raw(tmp_path, "ping", "a.txt", b"x", started_at_utc=now, ended_at_utc=now)
    with pytest.raises(ParameterError, match="never written over"):
        write_raw(tmp_path, "ping", "a.txt", b"y", started_at_utc=now, ended_at_utc=now)
    assert (tmp_path / "ping/a.txt").read_bytes() == b"x" and file.bytes == 1
    assert [path.name for path in (tmp_path / "ping").iterdir()] == ["a.txt"]


def at(second):
    return f"2026-01-01T00:00:{second:02d}.000000+00:00"


def journal_of(folder, spans) -> Run:
    """A run whose tests have these (from, to, start, end); an end of None is an interruption."""
    events = []
    for number, (a, b, begin, end) in enumerate(spans):
        about = {"test_id": f"t{number}", "attempt": 1}
        events.append({**start(f"t{number}", ends=(a, b)), "at_utc": at(begin)})
        if end is not None:
            events.append({"event": "test-finished", **about, "files": [], "at_utc": at(end)})
    events.sort(key=lambda event: (event["at_utc"], event["event"] == "test-started"))
    first = {"event": "run-started", "at_utc": at(0), "schema_version": 1, "campaign": "c", "run_id": "r",
             "plan": PLAN, "parameters": {}, "lab": {}}  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in [first, *events]))
    return Run.open(folder)


def test_overlaps_are_found(tmp_path):
    clean = [(A, B, 1, 5), (B, A, 5, 9), (C, "aws:x", 1, 9)]
    assert len(overlaps(journal_of(tmp_path / "clean", clean))) == 0
    found = overlaps(journal_of(tmp_path / "dirty", [(A, B, 1, 5), (B, C, 4, 9), (C, A, 8, 10)]))
    assert found[["region", "test_id", "other_test_id", "overlap_s"]].to_numpy().tolist() == [
        [C, "t1", "t2", 1.0],
        [B, "t0", "t1", 1.0],
    ]
    long = overlaps(journal_of(tmp_path / "long", [(A, B, 1, 30), (B, C, 4, 5), (C, B, 20, 21)]))
    assert len(long) == 2 and set(long["test_id"]) == {"t0"}


def test_an_interrupted_test_lasts_as_long_as_its_session(tmp_path):
    found = overlaps(journal_of(tmp_path, [(A, B, 1, None), (A, C, 3, 5)]))
    assert found["overlap_s"].tolist() == [2.0]


def test_find_and_tests_of(tmp_path):
    measured(tmp_path)
    with claimed(tmp_path, campaign="c2") as writer:
        writer.start({"kind": "scripted"})
        writer.finish()
    assert [run.campaign for run in runs.find(tmp_path, "c1")] == ["c1"]
    assert len(runs.find(tmp_path)) == 2
    assert runs.tests_of(runs.find(tmp_path))["outcome"].tolist() == ["done"]
    assert len(runs.tests_of([])) == 0
