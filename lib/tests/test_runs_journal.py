"""The journal: whole lines, checked events, torn ends, and regions that were in two tests at once."""

import json
import os
import threading
from datetime import datetime, timedelta

import pytest
from run_folders import PLAN, A, B, C, claimed, lines, measured, rewrite, start

from wanbench.errors import ParameterError, RawDataError
from wanbench.runs import Run, RunWriter, journal, overlaps


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


@pytest.mark.parametrize("damage", ['{"event": "test-fin', "", "[]", "17", '"x"', "{}", '{"event": 3}', "[" * 100_000])
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
    rewrite(run, [*lines(run)[:1], json.dumps({"event": "moon", "at_utc": journal.now_utc()}), *lines(run)[1:]])
    assert len(Run.open(run.folder).tests()) == 1


@pytest.mark.parametrize("which", [1, 2])
def test_a_test_ends_once_and_only_if_it_was_started(tmp_path, which):
    run = measured(tmp_path)
    new = lines(run)
    rewrite(run, [*new[:2], new[3], *new[2:]] if which == 1 else [*new[:4], new[3], *new[4:]])
    with pytest.raises(RawDataError, match="the end of an attempt that started"):
        Run.open(run.folder)


def test_the_same_attempt_is_not_started_twice(tmp_path):
    run = measured(tmp_path)
    rewrite(run, [*lines(run)[:3], *lines(run)[2:]])
    with pytest.raises(RawDataError, match="did not start before"):
        Run.open(run.folder)


def test_many_threads_append_whole_lines(tmp_path):
    log = journal.Journal(tmp_path / "journal.jsonl")
    threads = [
        threading.Thread(
            target=lambda n=n: [log.append({"event": "interrupted", "reason": f"{n}-{k}" * 50}) for k in range(20)]
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


def test_an_unknown_event_is_not_written(tmp_path):
    log = journal.Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ParameterError, match="'moon'"):
        log.append({"event": "interrupted", "reason": ""}, {"event": "moon"})
    log.close()
    assert os.path.getsize(tmp_path / "journal.jsonl") == 0


def at(second):
    return f"2026-01-01T00:00:{second:02d}.000000+00:00"


def journal_of(folder, spans, resumed=()) -> Run:
    """A run whose tests have these (from, to, start, end); an end of None is an interruption."""
    events = [{"event": "resumed", "lab": {}, "at_utc": at(second)} for second in resumed]
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
    run = journal_of(tmp_path / "clean", clean)
    assert len(overlaps(run)) == 0 and run.measured_s == 8
    found = overlaps(journal_of(tmp_path / "dirty", [(A, B, 1, 5), (B, C, 4, 9), (C, A, 8, 10)]))
    assert found[["region", "test_id", "other_test_id", "overlap_s"]].to_numpy().tolist() == [
        [C, "t1", "t2", 1.0],
        [B, "t0", "t1", 1.0],
    ]
    long = overlaps(journal_of(tmp_path / "long", [(A, B, 1, 30), (B, C, 4, 5), (C, B, 20, 21)]))
    assert len(long) == 2 and set(long["test_id"]) == {"t0"}


def test_a_clock_that_is_set_back_during_a_run_is_said(tmp_path):
    run = measured(tmp_path)
    assert "set back" not in str(run)
    new = [json.loads(line) for line in lines(run)]
    for event in new[3:]:
        event["at_utc"] = (datetime.fromisoformat(event["at_utc"]) - timedelta(hours=1)).isoformat()
    rewrite(run, [json.dumps(event) for event in new])
    assert "the clock was set back by 3,600.0 s during the run" in str(Run.open(run.folder))


def test_an_interrupted_test_lasts_as_long_as_its_session(tmp_path):
    run = journal_of(tmp_path, [(A, B, 1, None), (A, C, 3, 5), (A, B, 7, 9)], resumed=[6])
    assert overlaps(run)["overlap_s"].tolist() == [2.0] and run.measured_s is None
