"""How a notebook shows a run, and a tool's output."""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd


@dataclass(frozen=True, repr=False)
class RawOutput:
    """A tool's output, shown below its command."""

    command: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)}\n{self.text}"

    __repr__ = __str__


def as_text(run) -> str:
    """A `Run` in a few lines."""
    return f"Run {run.run_id}\n" + "\n".join(f"  {name:<9} {text}" for name, text in _facts(run))


def as_html(run) -> str:
    """A `Run` as a small table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in _facts(run)
    )
    return f"<table><caption>Run {html.escape(run.run_id)}</caption>{rows}</table>"


def to_the_second(at_utc: str | None) -> str:
    """
    A time of a journal as pages show it; "" for None.

    >>> to_the_second("2026-11-21T13:40:54.480257+00:00")
    '2026-11-21 13:40:54 UTC'
    """
    return f"{pd.Timestamp(at_utc):%Y-%m-%d %H:%M:%S} UTC" if at_utc else ""


def _facts(run):
    events = run.events()
    started = to_the_second(events[0].get("at_utc") if events else None) or "not yet"
    state = f"finished {to_the_second(run.manifest['ended_at_utc'])}" if run.finished else "not finished"
    return [
        ("campaign", run.campaign),
        ("started", f"{started}, {state}"),
        ("tests", _tests(run)),
        ("time", _time(run) + _stepped_back(events)),
        ("lab", _lab(run)),
        ("folder", "/".join(run.folder.resolve().parts[-3:])),
    ]


def _tests(run):
    done = {a.test_id for a in run.attempts() if a.outcome == "done"}
    planned = run.plan.get("tests")
    n_planned = len(planned) if isinstance(planned, list) else 0
    return f"{len(done)} of {n_planned} done, {len(run.failures())} failed"


def _time(run):
    expected_s = run.plan.get("expected_s")
    expected = f"; the plan expected {expected_s:.0f} s" if isinstance(expected_s, int | float) else ""
    measured = "in several sessions" if run.measured_s is None else f"{run.measured_s:.0f} s of measuring"
    return measured + expected


def _stepped_back(events):
    """A remark if the clock was set back between two lines of the journal: "finished" may stand before "started"."""
    times = [pd.Timestamp(event["at_utc"]) for event in events]
    back_s = max(((a - b).total_seconds() for a, b in pairwise(times)), default=0.0)
    return f"; the clock was set back by {back_s:,.1f} s meanwhile: times are wrong" if back_s > 0 else ""


def _lab(run):
    kind, emulator = run.lab.get("kind", "not known"), run.lab.get("emulator")
    return f"{kind}, links by {emulator}" if emulator else str(kind)
