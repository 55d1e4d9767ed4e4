"""
`python -m torture`: inflict faults on small studies, several at a time, and count what is lost or left.

For each fault a study starts, which lasts some seconds; the fault comes at a random moment of it. After its end the
study is resumed. Then it is checked that
- every file that a finished test had measured, and every line of the journal, is still there with the same hash; the
  run is finished, its hashes hold, every test is done, and its tables have every repetition (else: lost);
- no process, control group, mount, device or temporary file of the study is left (else: left); namespaces and ports
  are held by processes;
- nobody saw a traceback (else: tracebacks);
- the exit status and the last lines are among those that the fault may have (else: silent).
The table is written as JSON. The status is 1 if any count is not 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from wanbench.errors import WanbenchError
from wanbench.read.ingest.run import read_run
from wanbench.runs import Run

from .faults import DONE, FAILED, FAULTS
from .table import HARMS
from .watched import KINDS, Kind, NotPossible, Started, Study, is_any, let_hear, scratch, unmount

LAST_LINES = 3
RESTORE = {2: r"Restore the run from a copy, or start a new run with --fresh"}


def one_fault(kind: str, seed: int) -> dict[str, list[str]]:
    """Inflict one fault; return what went wrong, by kind of harm. Raise NotPossible if it came too late."""
    fault = FAULTS[kind]
    found: dict[str, list[str]] = {harm: [] for harm in HARMS}
    with scratch() as folder:
        study = Study(Path(folder), fault.study, fault.own_disk)
        try:
            with study.on_hosts():
                _inflict(study, fault, seed, found)
            found["left"] += study.files_left()
        finally:
            for pid in study.processes(is_any):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if fault.own_disk:
                unmount(study.data)
        found["left"] += ["a mount"] if folder in Path("/proc/self/mounts").read_text() else []
    return found


def _inflict(study, fault, seed, found):
    try:
        fault.act(study, random.Random(seed))
    finally:
        found["left"] += study.end()
        if study.mend:
            study.mend()
    found["left"] += study.left()
    for one in study.started:
        _check_words(one, fault.endings, found)
    if study.resumes:
        _check_resumed(study, fault, found)


def _check_words(started: Started, endings, found):
    said, status = started.said(), started.process.returncode
    for word in ("Traceback", "Exception ignored"):
        if word in said:
            found["tracebacks"].append(said[said.index(word) :][-1500:])
            break
    last = "\n".join(said.strip().splitlines()[-LAST_LINES:])
    if status not in endings or not re.search(endings[status], last):
        found["silent"].append(f"status {status}: {last[-400:]}")


def _check_resumed(study, fault, found):
    """Resume the study, and compare what is there with what was there before and after the fault."""
    at_end = study.kept()
    earlier = study.before | at_end if study.expects_kept else {}
    if study.expects_kept:
        found["lost"] += [f"{name}, after the fault" for name in _changed(study, study.before, at_end)]
    study.environment = {"WANBENCH_AGAIN": "retry-failed"} if fault.endings.get(0) == FAILED[0] else {}
    resumed = study.start()
    found["left"] += study.end() + study.left()
    noticed = study.damaged and study.lists(study.damaged)
    _check_words(resumed, RESTORE if noticed else DONE, found)
    if noticed:
        with suppress(WanbenchError):
            Run.open(study.damaged.parents[1]).verify()
            found["lost"].append(f"the damage of {study.damaged.name} is not noticed")
        return
    after = study.kept()
    found["lost"] += [f"{name}, after resuming" for name in _changed(study, earlier, after)]
    for folder in study.folders():
        try:
            found["lost"] += _missing(folder, study.kind)
        except WanbenchError as error:
            found["lost"].append(str(error))


def _changed(study, earlier, now):
    """Return the names of what differs, except the file that the fault damaged."""
    damaged = study.damaged and str(study.damaged.relative_to(study.data))
    return [name for name, hashed in earlier.items() if now.get(name) != hashed and name != damaged]


def _missing(folder: Path, kind: Kind) -> list[str]:
    """Return what a finished run lacks; raise WanbenchError if it cannot be read."""
    run = Run.open(folder)
    run.verify()
    done = {attempt.test_id: attempt.attempt for attempt in run.attempts() if attempt.outcome == "done"}
    lacking = [] if run.finished else [f"{folder.name} is not finished"]
    read = read_run(run)
    for table, wanted in kind.rows.items():
        of_tests = [
            (read[table].test_id == test_id) & (read[table].attempt == attempt) for test_id, attempt in done.items()
        ]
        if (rows := sorted(int(of_test.sum()) for of_test in of_tests)) != list(wanted):
            lacking.append(f"{rows} rows of {table} in the tests that are done, not {list(wanted)}")
    return lacking


class Torturer:
    """Inflicts faults by turns until the time is over, several at a time, and counts what happened."""

    def __init__(self, kinds: list[str], seed: int, until: float):
        self.kinds, self.chance, self.until = kinds, random.Random(seed), until
        self.table, self.examples, self.n = {kind: Counter() for kind in kinds}, [], 0
        self.round, self.drawn = 0, []  # what is drawn and waits for its turn
        self.reasons: Counter[str] = Counter()
        self.lock = threading.Lock()

    def work(self) -> None:
        """Inflict one fault after the other."""
        while (drawn := self._draw()) is not None:
            number, kind, seed = drawn
            try:
                found = one_fault(kind, seed)
            except NotPossible as why:
                with self.lock:
                    self.table[kind]["not possible"] += 1
                    self.reasons[f"{kind}: {why}"] += 1
                print(f"{number:4} {kind}: {why}", flush=True)
                continue
            with self.lock:
                self.table[kind]["n"] += 1
                for harm, cases in found.items():
                    self.table[kind][harm] += bool(cases)
                    self.examples += [{"fault": kind, "seed": seed, harm: cases}] if cases else []
            what = "; ".join(f"{harm}: {cases}" for harm, cases in found.items() if cases)
            print(f"{number:4} {kind}: {what or 'ok'}", flush=True)

    def _draw(self):
        with self.lock:
            if time.monotonic() > self.until:
                return None
            while not self.drawn:
                turns = ((n + self.round) % KINDS[FAULTS[kind].study].every == 0 for n, kind in enumerate(self.kinds))
                self.drawn = [kind for kind, now in zip(self.kinds, turns, strict=True) if now]
                self.chance.shuffle(self.drawn)
                self.round += 1
            self.n += 1
            return self.n, self.drawn.pop(), self.chance.randrange(2**32)


def main() -> int:
    """Inflict faults until the time is over; print a line for each, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("--seed", type=int, default=1, help="of kinds and moments (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="start no fault after this time (default: 10)")
    parser.add_argument("--jobs", type=int, default=3, help="studies at a time (default: %(default)s)")
    parser.add_argument("--only", default="", help="only kinds that this regular expression matches")
    parser.add_argument(
        "--into", type=Path, default=Path("build/torture.json"), help="the table (default: %(default)s)"
    )
    options = parser.parse_args()
    kinds = [kind for kind in FAULTS if re.search(options.only, kind)]
    if not kinds:
        parser.error(f"--only is {options.only!r}; the kinds are: {', '.join(FAULTS)}")
    let_hear()
    start = time.monotonic()
    torturer = Torturer(kinds, options.seed, start + 60 * options.minutes)
    with ThreadPoolExecutor(options.jobs) as jobs:
        working = [jobs.submit(torturer.work) for _ in range(options.jobs)]
        try:
            for job in working:
                job.result()
        finally:
            torturer.until = 0
    total = sum(torturer.table.values(), Counter())
    took_s = time.monotonic() - start
    about = {"seed": options.seed, "jobs": options.jobs, "seconds": round(took_s)}
    text = about | {
        "total": total,
        "kinds": torturer.table,
        "not_possible": torturer.reasons,
        "harm": torturer.examples,
    }
    options.into.parent.mkdir(parents=True, exist_ok=True)
    options.into.write_text(json.dumps(text, indent=1) + "\n")
    print(f"{total['n']} faults in {took_s:.0f} s: " + ", ".join(f"{total[harm]} {harm}" for harm in HARMS))
    return int(not total["n"] or any(total[harm] for harm in HARMS))


if __name__ == "__main__":
    sys.exit(main())
