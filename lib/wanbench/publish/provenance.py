"""
State the runs that a page used, and the source of its numbers.

A notebook ends with `provenance(run)`. JupyterLab shows the result as a small table. The published page shows the runs
in its footer, with the parameters, the versions of packages and the commit.
"""

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from nbformat import NotebookNode

from wanbench.read.ingest.lab import lab_cost
from wanbench.runs import Run

from .notebooks import CHECK, LEDGER, kind

LICENCE = "Apache-2.0"  # Of the pages, figures and their numbers; a test compares it with the file LICENSE.
MIME = "application/vnd.wanbench.provenance+json"
Facts = dict[str, Any]  # Facts about a run, by name.


@dataclass(frozen=True)
class Provenance:
    """
    The runs that a notebook used.

    Each run has the keys run_id, campaign, lab, started_at_utc, ended_at_utc (None for an unfinished run), tests (the
    numbers of attempts, as text), tools (versions by name) and commit.
    """

    runs: tuple[Facts, ...]

    def __str__(self) -> str:
        if not self.runs:
            return "No run was read."
        lines = (f"Run {run['run_id']} of campaign {run['campaign']}: {run['tests']}" for run in self.runs)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        shown = ("run_id", "campaign", "lab", "tests")
        cells = ("".join(f"<td>{escape(run[key])}</td>" for key in shown) for run in self.runs)
        head = "<tr><th>Run</th><th>Campaign</th><th>Lab</th><th>Tests</th></tr>"
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        html = table if self.runs else "<p>No run was read.</p>"
        return {"text/plain": str(self), "text/html": html, MIME: {"runs": list(self.runs)}}


def provenance(*runs: Run) -> Provenance:
    """
    Return the runs that a notebook used, for its last cell to show.

    >>> provenance()
    No run was read.
    """
    return Provenance(tuple(_facts(run) for run in runs))


def _facts(run: Run) -> Facts:
    events = run.events()
    outcomes = run.tests()["outcome"].value_counts()
    manifest = run.manifest or {}
    origin = manifest or next((event["origin"] for event in events if "origin" in event), {})
    tools = run.lab.get("tools")
    tools = tools if isinstance(tools, dict) else {}
    counted = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
    return {
        **{"run_id": str(run.run_id), "campaign": str(run.campaign), "lab": _lab(run)},
        "started_at_utc": events[0]["at_utc"] if events else None,
        "ended_at_utc": manifest.get("ended_at_utc"),
        "tests": f"attempts: {counted}" if counted else "no tests",
        "tools": {str(name): str(version) for name, version in tools.items()},
        "commit": origin.get("git_commit"),
    }


def _lab(run: Run) -> str:
    """Return the kind of lab, the link emulator, and the actual and expected cost, as text."""
    lab = " by ".join(str(run.lab[key]) for key in ("kind", "emulator") if run.lab.get(key)) or "not known"
    cost = lab_cost(run)
    return f"{lab}, {cost}" if cost else lab


@dataclass(frozen=True)
class Source:
    """Origin of a page's numbers: `line` is printed below its figures; their files hold `date` and `software`."""

    line: str
    date: str = ""
    software: str = "wanbench"


def source_of(page: str, notebook: NotebookNode, runs: list[Facts], origin: Facts) -> Source:
    """
    Return the source of a page's numbers: its runs; if there are none, the published data that its notebook reads; if
    there are none either, a few words such as "Not measured".

    `origin` is the result of `runs.origin`.
    """
    commit = f", commit {origin['git_commit']}" if origin["git_commit"] else ""
    software = f"wanbench {origin['wanbench_version']}{commit}"
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    published = sorted(set(re.findall(r"""read_published\(["']([a-z0-9-]+)["']""", code)))
    if runs:
        days = sorted({run["started_at_utc"][:10] for run in runs if run["started_at_utc"]})
        names = sorted(run["run_id"] for run in runs)
        labs = sorted({run["lab"].split(",")[0] for run in runs})
        where = "Emulated links" if all(lab.startswith("local") for lab in labs) else f"Hosts: {', '.join(labs)}"
        which = f"run {names[0]}" if len(names) == 1 else f"{len(names)} runs, {names[0]} to {names[-1]}"
        when = " to ".join(dict.fromkeys((*days[:1], *days[-1:])))
        return Source(", ".join(filter(None, (where, "wanbench", which, when))), when, software)
    if published:
        months = sorted(re.findall(r"\d{4}-\d{2}", " ".join(published)))
        years = " and ".join(dict.fromkeys(month[:4] for month in months))
        text = f"Published data{f' of {years}' if years else ''} ({', '.join(published)})"
        return Source(f"{text}, wanbench, page {page}", months[-1] if months else "", software)
    text = {CHECK: "Simulations and tests", LEDGER: "Published claims, checked"}.get(kind(notebook), "Not measured")
    return Source(f"{text}, wanbench, page {page}", "", software)
