"""
Keep figures of benchmarks, and write them into docs/measured.md: `python benchmarks/measured.py`.

Benchmarks append their figures to build/bench.jsonl, each with the figure of a peer from the same run, if there is one.
The table, between two markers, has the newest figure of each name; figures that were not measured again keep their
rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS, PAGE = ROOT / "build" / "bench.jsonl", ROOT / "docs" / "measured.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEAD = "| what | here | bound | peer | here over peer | measured |\n|---|---|---|---|---|---|\n"


def record(what: str, value: float, unit: str, *, bound: str = "", peer: str = "", of_peer: float | None = None):
    """
    Append a figure.

    `what` is its name and its row in the table, `bound` is in words, such as "at least 350", `peer` is the name of what
    it is compared with, and `of_peer` the peer's figure in the same unit.
    """
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    about = {"what": what, "value": value, "unit": unit, "bound": bound, "peer": peer, "of_peer": of_peer}
    about |= {
        "command": " ".join([f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "day": time.strftime("%Y-%m-%d"),
        "commit": commit.strip(),
    }
    about |= {"processors": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a") as file:
        file.write(json.dumps(about) + "\n")


def table(old: str, lines: list[str]) -> str:
    """Return the table in Markdown: the rows of the old table, where newer records, in JSON, replace their figures."""
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in old.strip().splitlines(keepends=True)[2:]}
    rows |= {about["what"]: _row(about) for about in map(json.loads, lines)}
    return HEAD + "".join(row.rstrip("\n") + "\n" for row in rows.values())


def _row(about):
    unit, bound, peer = about["unit"], about["bound"], ""
    ratio = ""
    if about["of_peer"] is not None:
        peer = f"{about['peer']}: {about['of_peer']:.3g} {unit}"
        ratio = f"{about['value'] / about['of_peer']:.3g}" if about["of_peer"] else ""
    machine = f"{about['day']}, {about['commit']}, {about['processors']} processors, load {about['load']:.1f}"
    where = f"`.venv/bin/python {about['command']}`: {machine}"
    return f"| {about['what']} | {about['value']:.3g} {unit} | {bound} | {peer} | {ratio} | {where} |\n"


def written(page: str, lines: list[str]) -> str:
    """Return the page with the table between its markers."""
    before, rest = page.split(BEGIN)
    old, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(old, lines)}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), RECORDS.read_text().splitlines()))
