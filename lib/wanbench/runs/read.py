"""Read a run folder, finished or not."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import LATER, MissingDataError, ParameterError, RawDataError

from . import journal
from .attempts import Attempt, attempts_of, files_of
from .raw import inside, sha256

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
THINNED = "thinned.json"
"""Name of the file that says which raw files were replaced by counts; the manifest still lists the originals."""
TEST_COLUMNS = [
    "run_id", "test_id", "attempt", "round", "from_region", "to_region", "outcome", "failed_experiment",
    "reason", "started_at_utc", "ended_at_utc",
]  # fmt: skip


class Run:
    """
    A run folder: its plan, the outcome of each test, and its raw files.

    `manifest` is None if the run is not finished. `torn` is a truncated last line of the journal, which a killed
    process left and which is ignored; usually b"". `thinned` describes the raw files that a file of counts has
    replaced, by path: "sha256" and "bytes" of the original, "at_utc" of the replacement, and "counts" with the path,
    sha256 and bytes of the file of counts.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any] | None, lines: journal.Lines):
        self.manifest: dict[str, Any] = manifest or LATER
        self.folder, self.torn, self._events = folder, lines.torn, lines.events
        self._attempts = tuple(attempts_of(folder, lines.events))
        self.thinned: dict[str, dict[str, Any]] = _json_object(folder / THINNED) or {}

    @classmethod
    def open(cls, folder: str | Path | Run) -> Run:
        """
        Read the journal, and the manifest if there is one; a `Run` is returned unchanged.

        Raise ParameterError if the folder has no journal and so is not a run folder. Raise RawDataError if the journal
        or the manifest is damaged, has another schema version, or was changed after the run had finished.
        """
        if isinstance(folder, Run):
            return folder
        folder = Path(folder)
        path = folder / journal.NAME
        if not path.is_file():
            if (folder / MANIFEST).exists():
                raise RawDataError(path, None, "no file", "the journal of a finished run")
            raise ParameterError(f"{folder} is not a run folder: it has no {journal.NAME}.")
        lines = journal.read(path)
        if lines.events:
            first = lines.events[0]
            if first["event"] != "run-started":
                raise RawDataError(path, 1, first["event"], "'run-started' first")
            _check_version(path, 1, first["schema_version"])
        run = cls(folder, _manifest(folder), lines)
        if run.finished:
            run._check_manifest()
        return run

    def _check_manifest(self) -> None:
        """Raise RawDataError unless the manifest has the journal's hash and repeats the journal's facts."""
        path, recorded = self.folder / journal.NAME, self.manifest["files"].get(journal.NAME)
        if (found := sha256(path)) != recorded:
            raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {recorded}, as when the run finished")
        expected = {**self.facts(), "files": self.manifest["files"]}
        keys = {**expected, **self.manifest}
        if wrong := ", ".join(key for key in keys if self.manifest.get(key) != expected.get(key)):
            path = self.folder / MANIFEST
            raise RawDataError(path, None, f"another {wrong}", "the values in the journal")

    def facts(self) -> dict[str, Any]:
        """Return what the manifest of a finished run holds besides the files' hashes: facts from the journal."""
        first, last = self._events[0], self._events[-1]
        origin = first.get("origin")
        return {
            "schema_version": SCHEMA_VERSION,
            "campaign": self.campaign,
            "run_id": self.run_id,
            "identity_sha256": first.get("identity_sha256"),
            **(origin if isinstance(origin, dict) else {}),
            "started_at_utc": first["at_utc"],
            "ended_at_utc": last["at_utc"],
            "sessions": 1 + sum(event["event"] == "resumed" for event in self._events),
            "parameters": self._start().get("parameters", {}),
            "plan": self.plan,
            "lab": self.lab,
            "tools": self.lab.get("tools", {}),
        }

    @property
    def finished(self) -> bool:
        """Return whether the run has a manifest, which is written last."""
        return self.manifest is not None

    @property
    def run_id(self) -> str:
        return self._start().get("run_id", self.folder.name)

    @property
    def campaign(self) -> str:
        return self._start().get("campaign", self.folder.parent.name)

    @property
    def parameters(self) -> dict[str, Any]:
        """
        Return the parameters recorded with the run.

        If the experiments of its tests differ, "swept" maps each setting that differs, such as "load.acks", to its
        values in the order of the plan (None: not set).
        """
        tests = [test for test in self.plan.get("tests", ()) if isinstance(test, dict)]
        experiments = [each for test in tests for each in test.get("experiments", ())]
        table = pd.json_normalize(experiments)
        table = table.astype("object").where(table.notna(), None)
        distinct = {name: {json.dumps(value): value for value in table[name]} for name in table}
        swept = {name: list(values.values()) for name, values in distinct.items() if len(values) > 1}
        return self._start().get("parameters", {}) | ({"swept": swept} if swept else {})

    @property
    def plan(self) -> dict[str, Any]:
        """Return the plan, as `wanbench.measure.plan.Plan.as_dict` gives it."""
        return self._start().get("plan", {})

    @property
    def lab(self) -> dict[str, Any]:
        """
        Return the description of the lab (`Lab.describe`) that the journal records when the lab first opens; if it
        never opened, only its kind.
        """
        described = [event["lab"] for event in self._events if event["event"] in ("run-started", "resumed")]
        return next((lab for lab in described if len(lab) > 1), self._start().get("lab", {}))

    @property
    def measured_s(self) -> float | None:
        """Return the seconds from the first test's start to the last test's end; None with several sessions or none."""
        ends = [a.ended_at_utc for a in self._attempts if a.ended_at_utc]
        if not ends or any(event["event"] == "resumed" for event in self._events):
            return None
        start = min(a.started_at_utc for a in self._attempts)
        return (pd.Timestamp(max(ends)) - pd.Timestamp(start)).total_seconds()

    def _start(self) -> dict[str, Any]:
        return self._events[0] if self._events else {}

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the journal in order, each with its "line_number"."""
        return [dict(event) for event in self._events]

    def attempts(self) -> tuple[Attempt, ...]:
        """Return all attempts at tests, in the order of their starts."""
        return self._attempts

    def first_output(self, experiment: str) -> RawOutput:
        """
        Return command and text of the first raw file of an experiment, such as "ping"; raise MissingDataError if there
        is none.
        """
        for file in self.raw_files():
            if file["experiment"] == experiment:
                text = (self.folder / file["path"]).read_text(errors="replace")
                return RawOutput(tuple(file["command"]), text)
        raise MissingDataError(f"run {self.run_id} has no raw file of {experiment}.")

    def failures(self) -> dict[str, Attempt]:
        """Return the last failed attempt at each test that never succeeded, by the test's id."""
        done = {a.test_id for a in self._attempts if a.outcome == "done"}
        return {a.test_id: a for a in self._attempts if a.outcome == "failed" and a.test_id not in done}

    def tests(self) -> pd.DataFrame:
        """Return table `tests`: one row per attempt, including failed and interrupted ones."""
        rows = [{"run_id": self.run_id, **{n: getattr(a, n) for n in TEST_COLUMNS[1:]}} for a in self._attempts]
        table = pd.DataFrame(rows, columns=TEST_COLUMNS)
        for column in ("attempt", "round"):
            table[column] = table[column].astype("int64")
        for column in ("started_at_utc", "ended_at_utc"):
            table[column] = pd.to_datetime(table[column], utc=True, format="ISO8601")
        tests = self.plan.get("tests")
        settings = {
            test["id"]: test.get("setting")
            for test in (tests if isinstance(tests, list) else ())
            if isinstance(test, dict) and isinstance(test.get("id"), str)
        }
        table.insert(4, "setting", [settings.get(test_id) for test_id in table.test_id])
        return table

    def links(self) -> list[dict[str, Any]]:
        """Return the links that the lab was asked to emulate; empty for a lab without emulated links."""
        links = self.lab.get("links", [])
        return list(links) if isinstance(links, list) else []

    def raw_files(self) -> list[dict[str, Any]]:
        """
        Return all raw files in the journal, in order, each as `RawFile.as_dict` gives it plus test_id, attempt, round,
        from_region, to_region and outcome (None for files of the lab itself).

        Files of interrupted attempts are left out, because they may be incomplete.
        """
        context = ("test_id", "attempt", "round", "from_region", "to_region", "outcome")
        parts = [({name: getattr(attempt, name) for name in context}, attempt.files) for attempt in self._attempts]
        of_lab: dict[str, Any] = dict.fromkeys(context)
        parts += [(of_lab, files_of(self.folder, one)) for one in self._events if one["event"] == "lab-closed"]
        now = {path: about["counts"] for path, about in self.thinned.items()}
        return [{**about, **file, **now.get(file["path"], {})} for about, files in parts for file in files]

    def files(self) -> dict[str, str]:
        """Return the SHA-256 of each file of a finished run by its path, without the manifest."""
        files = {path: recorded for path, recorded in self.manifest["files"].items() if path not in self.thinned}
        if self.thinned:
            files |= {about["counts"]["path"]: about["counts"]["sha256"] for about in self.thinned.values()}
            files[THINNED] = sha256(self.folder / THINNED)
        return files

    def verify(self) -> None:
        """
        Check the SHA-256 of every raw file and, for a finished run, that its files are exactly those in the manifest.

        A RawDataError names the first file that is missing, changed, or not in the manifest.
        """
        known = {file["path"]: file["sha256"] for file in self.raw_files()}
        if self.manifest is not None:
            listed = self.files()
            for path, recorded in known.items():
                if path != journal.NAME and listed.get(path) != recorded:
                    expected = f"{path} with SHA-256 {recorded}"
                    raise RawDataError(self.folder / MANIFEST, None, listed.get(path), expected)
            known = listed
            for file in sorted(self.folder.rglob("*")):
                path = file.relative_to(self.folder)
                is_hidden = any(part.startswith(".") for part in path.parts)
                if file.is_file() and not is_hidden and path.as_posix() not in {*listed, *self.thinned, MANIFEST}:
                    raise RawDataError(file, None, "a file", "no files except those in the manifest")
        for path, recorded in known.items():
            file = self.folder / inside(self.folder, path, self.folder / MANIFEST, None)
            if not file.is_file():
                raise RawDataError(file, None, "no file", f"a file with SHA-256 {recorded}")
            if (found := sha256(file)) != recorded:
                raise RawDataError(file, None, f"SHA-256 {found}", f"SHA-256 {recorded}")

    def __str__(self) -> str:
        return f"Run {self.run_id}\n" + "\n".join(f"  {name:<9} {text}" for name, text in self._facts().items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        row = "<tr><th style='text-align:left'>{}</th><td style='text-align:left'>{}</td></tr>"
        rows = "".join(row.format(html.escape(name), html.escape(text)) for name, text in self._facts().items())
        return f"<table><caption>Run {html.escape(self.run_id)}</caption>{rows}</table>"

    def _facts(self) -> dict[str, str]:
        """Return what a page shows of the run, by label."""
        started = _to_the_second(self._events[0]["at_utc"]) if self._events else "not yet"
        state = f"finished {_to_the_second(self.manifest['ended_at_utc'])}" if self.finished else "not finished"
        done = {a.test_id for a in self._attempts if a.outcome == "done"}
        planned, expected_s = self.plan.get("tests"), self.plan.get("expected_s")
        n_planned = len(planned) if isinstance(planned, list) else 0
        time = "in several sessions" if self.measured_s is None else f"{self.measured_s:.0f} s of measuring"
        if isinstance(expected_s, int | float):
            time += f"; the plan expected {expected_s:.0f} s"
        times = [pd.Timestamp(event["at_utc"]) for event in self._events]
        back_s = max(((a - b).total_seconds() for a, b in pairwise(times)), default=0.0)
        if back_s > 0:  # "finished" may stand before "started"
            time += f"; the clock was set back by {back_s:,.1f} s during the run, so its times are wrong"
        if self.thinned:
            times = {about["at_utc"] for about in self.thinned.values()}
            state += f"; {len(self.thinned)} raw files were replaced by counts {_to_the_second(max(times))}"
        kind, emulator = self.lab.get("kind", "unknown"), self.lab.get("emulator")
        return {
            "campaign": self.campaign,
            "started": f"{started}, {state}",
            "tests": f"{len(done)} of {n_planned} done, {len(self.failures())} failed",
            "time": time,
            "lab": f"{kind}, links emulated by {emulator}" if emulator else str(kind),
            "folder": "/".join(self.folder.resolve().parts[-3:]),
        }


def _check_version(path: Path, line_number: int | None, version: object) -> None:
    if version != SCHEMA_VERSION:
        raise RawDataError(path, line_number, version, f"schema version {SCHEMA_VERSION}")


def _json_object(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, None, str(error), "JSON") from None
    if not isinstance(content, dict):
        raise RawDataError(path, None, type(content).__name__, "a JSON object")
    return content


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    content = _json_object(path)
    if content is None:
        return None
    _check_version(path, None, content.get("schema_version"))
    if not isinstance(content.get("files"), dict):
        raise RawDataError(path, None, content.get("files"), "'files' of type dict")
    return content


def overlaps(run: Run) -> pd.DataFrame:
    """
    List pairs of tests that used the same region at the same time, and so shared its network. A valid run has none.

    Start and end come from the journal; an interrupted attempt counts until the last event of its session. The columns
    are region, test_id, attempt, other_test_id, other_attempt and overlap_s.
    """
    spans: dict[str, list[tuple[pd.Timestamp, pd.Timestamp, str, int]]] = {}
    for a in run.attempts():
        start, end = pd.Timestamp(a.started_at_utc), pd.Timestamp(a.ended_at_utc or a.last_sign_at_utc)
        for region in {a.from_region, a.to_region}:
            spans.setdefault(region, []).append((start, end, a.test_id, a.attempt))
    rows = []
    for region in sorted(spans):
        open_spans = spans[region][:0]
        for span in sorted(spans[region]):
            open_spans = [earlier for earlier in open_spans if earlier[1] > span[0]]
            for earlier in open_spans:
                common = (min(earlier[1], span[1]) - span[0]).total_seconds()
                rows.append((region, *earlier[2:], *span[2:], common))
            open_spans.append(span)
    return pd.DataFrame(rows, columns=["region", "test_id", "attempt", "other_test_id", "other_attempt", "overlap_s"])


def find(data_folder: str | Path, campaign: str | None = None) -> list[Run]:
    """
    Open all runs under <data_folder>/raw, or those of one campaign, oldest first. Raise ParameterError if the data
    folder has campaigns, but not `campaign`.
    """
    campaigns = [path.name for path in (Path(data_folder) / "raw").glob("*") if path.is_dir()]
    if campaign is not None and campaigns:
        check_choice("campaign", campaign, campaigns)
    return [Run.open(folder) for folder in run_folders(data_folder, campaign or "*")]


def run_folders(data_folder: str | Path, campaigns: str = "*") -> list[Path]:
    """List the folders raw/<campaign>/<run id> under a data folder that hold a journal, oldest first; open none."""
    folders = [path.parent for path in (Path(data_folder) / "raw").glob(f"{campaigns}/*/{journal.NAME}")]
    return sorted(folders, key=lambda folder: (folder.name, str(folder)))


@dataclass(frozen=True, repr=False)
class RawOutput:
    """A command and what it printed; shown with the command first."""

    command: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)}\n{self.text}"

    __repr__ = __str__


def _to_the_second(at_utc: str) -> str:
    return f"{pd.Timestamp(at_utc):%Y-%m-%d %H:%M:%S} UTC"
