"""
`python -m torture`: inflict one fault after the other on small studies, and count what is lost or left.

For each fault a study starts, which lasts some seconds; the fault comes at a random moment of it. After its end the
study is resumed. Then it is checked that
- what was done before is still there, with the same hashes, and every test is done (else: lost);
- no process, temporary file or mount of the study is left (else: left);
- nobody saw a traceback, and the last line says what happened (else: tracebacks, silent);
- a damaged raw file is noticed (else: lost).
The table is written as JSON. The status is 1 if any count is not 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .faults import FAULTS
from .watched import NotPossible, Study, scratch, unmount, verify

BAD = ("lost", "left", "tracebacks", "silent")
GRACEFUL = (0, 2, 130, 143)  # statuses that a driver chooses itself


def one_fault(kind: str, seed: int) -> dict[str, list[str]]:
    """Inflict one fault; return what went wrong, by kind of harm. Raise NotPossible if it came too late."""
    fault, own_disk = FAULTS[kind]
    found: dict[str, list[str]] = {harm: [] for harm in BAD}
    with scratch() as folder:
        study = Study(Path(folder), own_disk)
        try:
            try:
                fault(study, random.Random(seed))
            finally:
                found["left"] += study.end()
                if study.mend:
                    study.mend()
            found["left"] += study.left()
            _check_words(study, found)
            before = study.done() if study.expects_kept else {}
            study.driver = study.start(study.campaign)  # resumed
            found["left"] += study.end() + study.left()
            _check_resumed(study, before, found)
        finally:
            for pid in study.processes(lambda words: True):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if own_disk:
                unmount(study.data)
        mounts = Path("/proc/self/mounts").read_text()
        found["left"] += ["a mount"] if folder in mounts else []
    return found


def _check_words(study, found):
    said = study.log.read_text(errors="replace")
    if "Traceback" in said:
        found["tracebacks"].append(said[said.index("Traceback") :][-1500:])
    status, lines = study.driver.returncode, said.strip().splitlines()
    if status in GRACEFUL and status != 143 and not lines:  # after SIGKILL nobody can speak
        found["silent"].append(f"status {status}")
    if status > 0 and status not in GRACEFUL:
        found["silent"].append(f"status {status}: {lines[-1:]}")


def _check_resumed(study, before, found):
    said = study.log.read_text(errors="replace")
    if "Traceback" in said and not found["tracebacks"]:
        found["tracebacks"].append(said[said.index("Traceback") :][-1500:])
    after, faults = study.done(), [fault for folder in study.folders() if (fault := verify(folder))]
    if study.damaged:
        listed = {path for files in before.values() for path, _ in files}
        relative = "/".join(study.damaged.parts[-2:])
        if relative in listed and not faults:
            found["lost"].append(f"the damage of {relative} is not noticed")
        return
    changed = [key for key, files in before.items() if after.get(key) != files]
    found["lost"] += [f"{key} was done before" for key in changed] + faults
    if study.driver.returncode != 0:
        found["lost"].append(f"resuming ended with status {study.driver.returncode}: {said.strip().splitlines()[-1:]}")
    found["left"] += study.files_left()


def main() -> int:
    """Inflict faults by turns until the time is over; print a line for each, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.split("\n\n")[0].strip())
    parser.add_argument("--seed", type=int, default=1, help="of kinds and moments (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="start no fault after this time (default: 10)")
    parser.add_argument("--only", default="", help="only kinds that contain this text")
    parser.add_argument(
        "--into", type=Path, default=Path("build/torture.json"), help="the table (default: %(default)s)"
    )
    options = parser.parse_args()
    kinds = [kind for kind in FAULTS if options.only in kind]
    chance, start = random.Random(options.seed), time.monotonic()
    table, examples, n = {kind: Counter() for kind in kinds}, [], 0
    while time.monotonic() - start < 60 * options.minutes:
        if n % len(kinds) == 0:
            chance.shuffle(kinds)
        kind, seed = kinds[n % len(kinds)], chance.randrange(2**32)
        n += 1
        try:
            found = one_fault(kind, seed)
        except NotPossible as why:
            table[kind]["not possible"] += 1
            print(f"{n:4} {kind}: {why}", flush=True)
            continue
        table[kind]["n"] += 1
        for harm, cases in found.items():
            table[kind][harm] += bool(cases)
        examples += [{"fault": kind, "seed": seed, harm: cases} for harm, cases in found.items() if cases]
        print(
            f"{n:4} {kind}: {'; '.join(f'{harm}: {cases}' for harm, cases in found.items() if cases) or 'ok'}",
            flush=True,
        )
    total = sum(table.values(), Counter())
    took_s = time.monotonic() - start
    text = {"seed": options.seed, "seconds": round(took_s), "total": total, "kinds": table, "examples": examples}
    options.into.parent.mkdir(parents=True, exist_ok=True)
    options.into.write_text(json.dumps(text, indent=1) + "\n")
    print(f"{total['n']} faults in {took_s:.0f} s: " + ", ".join(f"{total[harm]} {harm}" for harm in BAD))
    return int(not total["n"] or any(total[harm] for harm in BAD))


if __name__ == "__main__":
    sys.exit(main())
