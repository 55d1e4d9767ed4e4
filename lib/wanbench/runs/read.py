"""Reading a run folder, finished or not."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import MissingDataError, ParameterError, RawDataError
from . import journal
from .raw import inside, sha256

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
TEST_COLUMNS = [
    "run_id", "test_id", "attempt", "round", "from_region", "to_region", "outcome", "failed_experiment",
    "reason", "started_at_utc", "ended_at_utc",
]  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    """One attempt at a test. `outcome` is "done", "failed" or "interrupted" (no end in the journal)."""

    test_id: str
    attempt: int
    round: int
    from_region: str
    to_region: str
    outcome: str
    failed_experiment: str | None
    reason: str | None
    started_at_utc: str
    ended_at_utc: str | None
    last_sign_at_utc: str
    files: tuple[dict, ...]


@dataclass(frozen=True, repr=False)
class RawOutput:
    """What a tool printed, shown below the command that printed it."""

    command: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)}\n{self.text}"

    __repr__ = __str__


class Run:
    """
    A run folder: what was planned, what became of each test, and the raw files.

    Attributes
    ----------
    folder : Path
    manifest : dict or None
        None where the run is not finished.
    torn : bytes
        What a killed writer left of a last journal line; b"" otherwise. It counts for nothing.
    """

    def __init__(self, folder: Path, manifest: dict | None, lines: journal.Lines):
        self.folder, self.manifest, self.torn = folder, manifest, lines.torn
        self._events = lines.events
        self._attempts = tuple(_attempts(folder, lines.events))

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """
        Read the journal, and the manifest if there is one.

        Raises
        ------
        ParameterError
            If the folder has no journal: it is not a run folder.
        RawDataError
            If journal or manifest are damaged or of another schema version.
        """
        folder = Path(folder)
        path = folder / journal.NAME
        if not path.is_file():
            raise ParameterError(f"{folder} is not a run folder: it has no {journal.NAME}.")
        lines = journal.read(path)
        if lines.events:
            first = lines.events[0]
            if first["event"] != "run-started":
                raise RawDataError(path, 1, first["event"], "'run-started' first")
            _check_version(path, 1, first["schema_version"])
        return cls(folder, _manifest(folder), lines)

    @property
    def finished(self) -> bool:
        """True if the manifest is there, which is written last."""
        return self.manifest is not None

    @property
    def run_id(self) -> str:
        """Name of the run, which is its folder's."""
        return self._start().get("run_id", self.folder.name)

    @property
    def campaign(self) -> str:
        """Name of the campaign."""
        return self._start().get("campaign", self.folder.parent.name)

    @property
    def parameters(self) -> dict:
        """The parameters that the run was started with."""
        return self._start().get("parameters", {})

    @property
    def plan(self) -> dict:
        """The plan, as `wanbench.plan.Plan.as_dict` gives it."""
        return self._start().get("plan", {})

    @property
    def lab(self) -> dict:
        """The lab's description (`Lab.describe`) when the run started."""
        return self._start().get("lab", {})

    @property
    def measured_s(self) -> float | None:
        """Seconds from the start of the first test to the end of the last; None for a run in several sessions."""
        ends = [a.ended_at_utc for a in self._attempts if a.ended_at_utc]
        if not ends or any(event["event"] == "resumed" for event in self._events):
            return None
        start = min(a.started_at_utc for a in self._attempts)
        return (pd.Timestamp(max(ends)) - pd.Timestamp(start)).total_seconds()

    def _start(self) -> dict:
        return self._events[0] if self._events else {}

    def events(self) -> list[dict]:
        """The journal's events in order, each with its "line_number"."""
        return [dict(event) for event in self._events]

    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt at a test, in the order in which they started."""
        return self._attempts

    def first_output(self, experiment: str) -> RawOutput:
        """The first raw file of an experiment, such as "ping", as text; MissingDataError if there is none."""
        for file in self.raw_files():
            if file["experiment"] == experiment:
                text = (self.folder / file["path"]).read_text(errors="replace")
                return RawOutput(tuple(file["command"]), text)
        raise MissingDataError(f"run {self.run_id} has no raw file of {experiment}.")

    def tests(self) -> pd.DataFrame:
        """
        Table `tests`: one row per attempt, failed and interrupted ones included.

        Columns run_id, test_id, attempt, round, setting (null: only trials and imports have one), from_region,
        to_region, outcome ("done", "failed", "interrupted"), failed_experiment, reason, started_at_utc, ended_at_utc
        (null where interrupted).
        """
        rows = [
            {"run_id": self.run_id, **{n: getattr(a, n) for n in TEST_COLUMNS[1:]}} for a in self._attempts
        ]
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

    def links(self) -> list[dict]:
        """The nominal links as the lab described them; empty where the lab has none."""
        links = self.lab.get("links", [])
        return list(links) if isinstance(links, list) else []

    def raw_files(self) -> list[dict]:
        """
        Every raw file that the journal knows, in order, as `RawFile.as_dict` with test_id, attempt, round,
        from_region, to_region and outcome of the test (None for what the lab itself left).

        Files of interrupted attempts are not among them: nobody knows whether they are whole.
        """
        context = ("test_id", "attempt", "round", "from_region", "to_region", "outcome")
        out = []
        for attempt in self._attempts:
            about = {name: getattr(attempt, name) for name in context}
            out += [{**about, **file} for file in attempt.files]
        for event in self._events:
            if event["event"] == "lab-closed":
                out += [{**dict.fromkeys(context), **file} for file in _files(self.folder, event)]
        return out

    def verify(self) -> None:
        """
        Check size and SHA-256 of every raw file, and of all that the manifest lists.

        Raises
        ------
        RawDataError
            Naming the first file that is missing or not what was recorded.
        """
        known = {file["path"]: file["sha256"] for file in self.raw_files()}
        if self.manifest is not None:
            listed = self.manifest["files"]
            for path, recorded in known.items():
                if path != journal.NAME and listed.get(path) != recorded:
                    raise RawDataError(
                        self.folder / MANIFEST, None, listed.get(path), f"{path} with SHA-256 {recorded}"
                    )
            known = listed
        for path, recorded in known.items():
            file = self.folder / inside(self.folder, path, self.folder / MANIFEST, None)
            if not file.is_file():
                raise RawDataError(file, None, "no file", f"a file with SHA-256 {recorded}")
            if (found := sha256(file)) != recorded:
                raise RawDataError(file, None, f"SHA-256 {found}", f"SHA-256 {recorded}")

    def _counts(self) -> dict[str, int]:
        done = {a.test_id for a in self._attempts if a.outcome == "done"}
        planned = self.plan.get("tests")
        failed = {a.test_id for a in self._attempts if a.outcome == "failed"} - done
        return {
            "planned": len(planned) if isinstance(planned, list) else 0,
            "done": len(done),
            "failed": len(failed),
        }

    def _facts(self) -> list[tuple[str, str]]:
        counts = self._counts()
        started = to_the_second(self._start().get("at_utc")) or "not yet"
        ended = to_the_second(self.manifest["ended_at_utc"]) if self.finished else ""
        state = f"finished {ended}" if ended else "not finished"
        tests = f"{counts['done']} of {counts['planned']} done, {counts['failed']} failed"
        return [
            ("campaign", self.campaign),
            ("started", f"{started}, {state}"),
            ("tests", tests),
            ("time", self._time()),
            ("lab", self._lab()),
            ("folder", "/".join(self.folder.resolve().parts[-3:])),
        ]

    def _lab(self) -> str:
        kind, emulator = self.lab.get("kind", "not known"), self.lab.get("emulator")
        return f"{kind}, links by {emulator}" if emulator else str(kind)

    def _time(self) -> str:
        expected_s = self.plan.get("expected_s")
        expected = f"; the plan expected {expected_s:.0f} s" if isinstance(expected_s, int | float) else ""
        return (
            "in several sessions" if self.measured_s is None else f"{self.measured_s:.0f} s of measuring"
        ) + expected

    def __str__(self) -> str:
        return f"Run {self.run_id}\n" + "\n".join(f"  {name:<9} {text}" for name, text in self._facts())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self._facts()
        )
        return f"<table><caption>Run {html.escape(self.run_id)}</caption>{rows}</table>"


def to_the_second(at_utc: str | None) -> str:
    """
    A time of a journal as pages show it; "" for None.

    >>> to_the_second("2026-11-21T13:40:54.480257+00:00")
    '2026-11-21 13:40:54 UTC'
    """
    return f"{pd.Timestamp(at_utc):%Y-%m-%d %H:%M:%S} UTC" if at_utc else ""


def overlaps(run: Run) -> pd.DataFrame:
    """
    Pairs of tests that used one region at the same time. There must be none: they would compete.

    Start and end are those of the journal; an interrupted attempt is taken to last until its session's last
    line.

    Returns
    -------
    DataFrame
        Columns region, test_id, attempt, other_test_id, other_attempt, overlap_s.
    """
    spans: dict[str, list[tuple]] = {}
    for a in run.attempts():
        start, end = pd.Timestamp(a.started_at_utc), pd.Timestamp(a.ended_at_utc or a.last_sign_at_utc)
        for region in {a.from_region, a.to_region}:
            spans.setdefault(region, []).append((start, end, a.test_id, a.attempt))
    rows = []
    for region in sorted(spans):
        open_spans: list[tuple] = []
        for span in sorted(spans[region]):
            open_spans = [earlier for earlier in open_spans if earlier[1] > span[0]]
            for earlier in open_spans:
                common = (min(earlier[1], span[1]) - span[0]).total_seconds()
                rows.append((region, *earlier[2:], *span[2:], common))
            open_spans.append(span)
    return pd.DataFrame(
        rows, columns=["region", "test_id", "attempt", "other_test_id", "other_attempt", "overlap_s"]
    )


def find(data_folder: str | Path, campaign: str | None = None) -> list[Run]:
    """
    All runs under <data folder>/raw, or all of one campaign, oldest first.

    Folders without a journal (a run that ended before its first line) are passed over.
    """
    pattern = f"{campaign or '*'}/*/{journal.NAME}"
    folders = [path.parent for path in (Path(data_folder) / "raw").glob(pattern)]
    return [Run.open(folder) for folder in sorted(folders, key=lambda folder: (folder.name, str(folder)))]


def tests_of(runs: list[Run]) -> pd.DataFrame:
    """The tables of tests of several runs in one, as `make_plan` takes it for `tests_done_before`."""
    tables = [table for run in runs if len(table := run.tests())]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=TEST_COLUMNS)


def _check_version(path, line_number, version):
    if version != SCHEMA_VERSION:
        raise RawDataError(path, line_number, version, f"schema version {SCHEMA_VERSION}")


def _manifest(folder):
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise RawDataError(path, None, str(error), "JSON") from None
    if not isinstance(content, dict):
        raise RawDataError(path, None, type(content).__name__, "a JSON object")
    _check_version(path, None, content.get("schema_version"))
    for key, kind in (("files", dict), ("ended_at_utc", str), ("started_at_utc", str)):
        if not isinstance(content.get(key), kind):
            raise RawDataError(path, None, content.get(key), f"{key!r} of type {kind.__name__}")
    return content


def _files(folder, event):
    path = folder / journal.NAME
    out = []
    for file in event["files"]:
        line = event["line_number"]
        if not isinstance(file, dict):
            raise RawDataError(path, line, file, "a file as a JSON object")
        for key, kind in (("path", str), ("experiment", str), ("sha256", str), ("bytes", int)):
            if not isinstance(file.get(key), kind):
                raise RawDataError(path, line, file.get(key), f"a file with {key!r} of type {kind.__name__}")
        inside(folder, file["path"], path, line)
        out.append(file)
    return tuple(out)


def _attempts(folder, events):
    path = folder / journal.NAME
    started: dict[tuple[str, int], dict] = {}
    ends: dict[tuple[str, int], dict] = {}
    last_sign: dict[tuple[str, int], str] = {}
    session: list[tuple[str, int]] = []
    for event in events:
        kind = event["event"]
        key = (event.get("test_id"), event.get("attempt"))
        if kind == "resumed":
            session = []
        if kind == "test-started":
            if key in started:
                raise RawDataError(
                    path, event["line_number"], key, "a test and attempt that was not started before"
                )
            started[key] = event
            session.append(key)
        elif kind in ("test-finished", "test-failed"):
            if key not in started or key in ends:
                raise RawDataError(
                    path, event["line_number"], key, "the end of a test that is started and not ended"
                )
            ends[key] = event
            session.remove(key)
        for waiting in session:
            last_sign[waiting] = event["at_utc"]
    for key, start in started.items():
        end = ends.get(key)
        failed = end is not None and end["event"] == "test-failed"
        yield Attempt(
            test_id=key[0],
            attempt=key[1],
            round=start["round"],
            from_region=start["from_region"],
            to_region=start["to_region"],
            outcome="interrupted" if end is None else "failed" if failed else "done",
            failed_experiment=end["experiment"] if failed else None,
            reason=end["reason"] if failed else None,
            started_at_utc=start["at_utc"],
            ended_at_utc=None if end is None else end["at_utc"],
            last_sign_at_utc=last_sign.get(key, start["at_utc"]),
            files=() if end is None else _files(folder, end),
        )
