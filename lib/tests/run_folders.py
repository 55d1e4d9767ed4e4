"""Small run folders, written as measuring writes them, for the tests of runs."""

from wanbench.runs import Run, claim, journal

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
