"""Run a plan on a lab: one thread per concurrent test, retries of failed tests, interruption and resumption."""

from __future__ import annotations

import dataclasses
import json
import queue
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wanbench.checks import check_number
from wanbench.errors import LabError, ParameterError, WanbenchError
from wanbench.measure.labs.base import Lab
from wanbench.measure.plan import Plan, Test, rounds
from wanbench.runs import RawFile, Run, RunWriter, claim
from wanbench.runs.journal import now_utc

from .progress import Progress

_THREADS_END_S = 15.0
_OF_SESSION = re.compile(r"counters(?:\.(\d+))?\.json|session-(\d+)\b")
"""
Matches the names of raw files that `_keep_of_lab` writes, with the number of their session; "counters.json" belongs to
session 1.
"""


def measure(
    plan: Plan,
    lab: Lab,
    *,
    data_folder: str | Path = "data",
    campaign: str,
    parameters: dict[str, object] | None = None,
    retries: int = 2,
    fresh: bool = False,
    retry_failed: bool = False,
    watched: Sequence[Any] = (),
) -> Run:
    """
    Measure a plan on a lab, and write the raw files to the run folder <data folder>/raw/<campaign>/<run id>.

    If the campaign already has runs with the same parameters, plan and lab, the newest of them is used: a finished run
    is returned without measuring, and an interrupted run is resumed with the tests that are not done. The lab must not
    be open yet: it is opened only if there is something to measure, and is closed in any case. The run's table of tests
    also has the tests that failed in every attempt, with the reason.

    Parameters
    ----------
    parameters : dict, optional
        Parameters of the caller, in JSON types; the manifest records them.
    retries : int
        How often a failed test is repeated, in extra rounds after those of the plan.
    fresh : bool
        Start a new run even if there is one with these parameters.
    retry_failed : bool
        Continue the existing run, and also repeat the tests that failed in every attempt.
    watched : sequence
        Objects that record further data, such as `wanbench.measure.labs.aws.cloudwatch.CloudWatch`. Before the lab
        closes, `keep(run folder, stem, time in UTC at which the lab opened, event)` of each object is called and
        returns raw files. `keep` must return at once when the event is set: the user has then interrupted the run.

    Raises
    ------
    ParameterError
        If the lab lacks a region of the plan, or a parameter is malformed.
    BudgetError
        If the user does not agree to the lab's cost, or the budget is used up. A call with a larger budget continues
        the run.
    RunHeldError
        If another process is measuring the same run.
    LabError
        If the lab cannot be opened; if it does not answer after a round in which all tests failed; if tests failed
        because of the machine; or if all tests failed. In all cases, the next call can resume the run.
    KeyboardInterrupt, SystemExit
        After SIGINT, SIGTERM or SIGHUP, once everything is stopped and the journal is written. The next call resumes
        the run.
    """
    check_number("retries", retries, 0, whole=True)

    claimed = claim(
        data_folder,
        campaign=campaign,
        parameters=parameters or {},
        plan=plan.as_dict(),
        lab_settings=_settings(lab),
        fresh=fresh,
        retry_failed=retry_failed,
    )
    if isinstance(claimed, Run):
        if failures := claimed.failures():
            failed = f"{len(failures)} of {len(plan.tests)} tests failed"
            hint = "--retry-failed measures these again, --fresh measures all tests again"
            print(f"run {claimed.run_id} is finished, but {failed}; {hint}", file=sys.stderr, flush=True)
        return claimed
    with claimed as writer:
        if writer.before is not None:
            print(f"resuming run {writer.folder.name}", file=sys.stderr, flush=True)
        session = _Session(plan, writer, retries, watched, retry_failed)
        if session.waiting():
            lab.agree_to(session.rest_of_plan(), campaign, writer.folder)
            try:
                session.measure_on(lab)
            except KeyboardInterrupt:  # without the traceback of the place where it happened to arrive
                raise KeyboardInterrupt("The measurements are kept; the next call continues.") from None
        session.check_failures()
        return writer.finish()


def _settings(lab: Lab) -> dict[str, object]:
    """Return the settings of a lab that is not open yet: a run is resumed only on a lab with equal settings."""
    links = sorted([*pair, dataclasses.asdict(link)] for pair, link in lab.links.items())
    more = {"settings": lab.settings and dict(lab.settings), "cluster": lab.cluster_settings}
    more = {name: value for name, value in more.items() if value}
    return {"kind": lab.kind, "links": links, "sysctls": dict(lab.sysctls)} | more


@dataclasses.dataclass(frozen=True)
class _Outcome:
    test: Test
    attempt: int
    files: list[RawFile]
    experiment: str | None = None
    error: BaseException | None = None


class _Session:
    """One session of measuring, from opening the lab to closing it."""

    def __init__(self, plan: Plan, writer: RunWriter, retries: int, watched: Sequence[Any], retry_failed: bool):
        self.plan, self.writer, self.retries, self.watched = plan, writer, retries, watched
        self.attempts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.done: set[str] = set()
        self.last_round = len(plan.rounds)
        self.news: queue.SimpleQueue[_Outcome | int] = queue.SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.stopping, self.interrupted = threading.Event(), threading.Event()
        before = writer.before
        self.number = 1 + (1 + sum(event["event"] == "resumed" for event in before.events()) if before else 0)
        for earlier in before.attempts() if before else ():
            name = earlier.test_id
            self.attempts[name] = max(self.attempts[name], earlier.attempt)
            self.failures[name] = 0 if earlier.by_machine else self.failures[name] + (earlier.outcome == "failed")
            self.last_round = max(self.last_round, earlier.round)
            self.done |= {name} if earlier.outcome == "done" else set()
        if retry_failed or not self.done:
            self.failures.clear()
        self._count_what_files_name()
        self.given_up = len(plan.tests) - len(self.done) - len(self.waiting())
        self.planned_s = self.spent_s = 0.0
        self.left_s = self._left_s()
        self.kept = False

    def _count_what_files_name(self):
        """
        Number attempts and this session above all numbers in names of raw files, because a truncated journal may lack
        some.
        """
        ids = {test.id for test in self.plan.tests}
        for name in (path.name for path in self.writer.folder.glob("*/[!.]*")):
            for match in re.finditer(r"\.(\d+)\.", name):
                if (test_id := name[: match.start()]) in ids:
                    self.attempts[test_id] = max(self.attempts[test_id], int(match[1]))
            if match := _OF_SESSION.match(name):
                self.number = max(self.number, 1 + int(match[1] or match[2] or 1))

    def check_failures(self) -> None:
        """Raise LabError, and leave the run unfinished, if the machine made tests fail or if all tests failed."""
        failures = Run.open(self.writer.folder).failures().values()
        blamed = [attempt for attempt in failures if attempt.by_machine or not self.done]
        if not blamed:
            return
        because = "because of the machine" if self.done else "and none was done"
        last = f"the last one for this reason: {' '.join(str(blamed[-1].reason).split()).rstrip('.')}"
        failed = f"{len(blamed)} of {len(self.plan.tests)} tests failed {because}, {last}"
        error = LabError(f"{failed}. The run stays open: remove the cause and start again.")
        self.writer.record({"event": "interrupted", "reason": _reason(error)})
        raise error

    def waiting(self) -> list[Test]:
        """Return the tests that are neither done nor given up."""
        return [t for t in self.plan.tests if t.id not in self.done and self.failures[t.id] <= self.retries]

    def rest_of_plan(self) -> Plan:
        """Return the plan with the waiting tests only."""
        waiting = {test.id for test in self.waiting()}
        rounds = (tuple(test for test in tests if test.id in waiting) for tests in self.plan.rounds)
        return dataclasses.replace(self.plan, rounds=tuple(tests for tests in rounds if tests))

    def measure_on(self, lab: Lab) -> None:
        """Open the lab, run the waiting tests, and close it whatever happens."""
        signals = _Signals(self.news, self.interrupted)
        opened_at_utc = now_utc()
        self.progress = Progress(len(self.plan.tests), done=len(self.done), failed=self.given_up)
        try:
            with lab:
                signals.wait_for_the_loop()
                try:
                    self._all_rounds(lab, opened_at_utc)
                    signals.raise_if_any()
                except BaseException as error:
                    self.stopping.set()
                    if self.writer.started:
                        with suppress(WanbenchError, OSError):
                            self._keep_of_lab(lab, opened_at_utc)
                        with suppress(WanbenchError, OSError):  # the error that ended the session matters more
                            self.writer.record({"event": "interrupted", "reason": _reason(error)})
                    raise
        except BaseException as error:
            if not self.writer.started:
                with suppress(LabError, OSError):
                    self._keep_costs_of(lab, error)
            raise
        finally:
            deadline = time.monotonic() + _THREADS_END_S
            for thread in self.threads:
                thread.join(max(deadline - time.monotonic(), 0))
            signals.restore()
            self.progress.close()

    def _all_rounds(self, lab: Lab, opened_at_utc: str) -> None:
        if lacking := [region for region in self.plan.regions if not lab.hosts.get(region)]:
            raise ParameterError(f"The lab has no host in {', '.join(lacking)}; it has {', '.join(sorted(lab.hosts))}.")
        self.writer.start(lab.describe())
        for tests in self.plan.rounds:
            ready = [t for t in tests if t.id not in self.done and not self.failures[t.id]]
            if ready:
                self._round(ready[0].round, ready, lab)
        while again := self.waiting():
            tests = {(t.from_region, t.to_region): t for t in again}
            for group in rounds(sorted(tests), seed=self.plan.seed, batch=self.plan.batch):
                self.last_round += 1
                self._round(self.last_round, [tests[pair] for pair in group], lab)
        self._keep_of_lab(lab, opened_at_utc)

    def _round(self, number: int, tests: Sequence[Test], lab: Lab) -> None:
        plan = dataclasses.replace(self.plan, rounds=(tuple(tests),))
        [slot_s] = plan.slots_s()
        lab.before_round(slot_s, plan.sent_bytes())
        self.attempts.update(test.id for test in tests)
        started = (
            {"event": "test-started", "test_id": test.id, "attempt": self.attempts[test.id], "round": number}
            | {"from_region": test.from_region, "to_region": test.to_region}
            for test in tests
        )
        self.writer.record({"event": "round-started", "round": number}, *started)
        self.threads = [
            threading.Thread(target=self._test, args=(test, self.attempts[test.id], lab), name=test.id, daemon=True)
            for test in tests
        ]
        started = time.monotonic()
        for thread in self.threads:
            thread.start()
        for _ in tests:
            outcome = self.news.get()
            if isinstance(outcome, int):
                raise _exception(outcome)
            self._conclude(outcome)
        for thread in self.threads:
            thread.join()
        if not self.done.intersection(test.id for test in tests):
            lab.describe()  # raises LabError if the lab itself no longer works
        self.planned_s += slot_s
        self.spent_s += time.monotonic() - started
        self.left_s = self._left_s()

    def _test(self, test: Test, attempt: int, lab: Lab) -> None:
        files, experiment = [], None
        try:
            for experiment in self.plan.experiments_of(test):
                if self.stopping.is_set():
                    return
                ends = lab.host(test.from_region), lab.host(test.to_region)
                files += experiment.run(*ends, self.writer.folder, f"{test.id}.{attempt}")
        except BaseException as error:
            files += getattr(error, "files", [])
            self.news.put(_Outcome(test, attempt, files, getattr(experiment, "name", None), error))
        else:
            self.news.put(_Outcome(test, attempt, files))

    def _conclude(self, outcome: _Outcome) -> None:
        error = outcome.error
        if error is not None and not isinstance(error, LabError):
            raise error
        event = {
            "event": "test-finished" if error is None else "test-failed",
            "test_id": outcome.test.id,
            "attempt": outcome.attempt,
            "files": [file.as_dict() for file in outcome.files],
        }
        if error is None:
            self.done.add(outcome.test.id)
        else:
            event |= {"experiment": outcome.experiment, "reason": str(error)}
            self.failures[outcome.test.id] += 1
            self.given_up += self.failures[outcome.test.id] > self.retries
        self.writer.record(event)
        self.progress.update(done=len(self.done), failed=self.given_up, left_s=self.left_s)

    def _left_s(self):
        """Return the expected time in s of the remaining rounds, scaled by the times that completed rounds took."""
        planned_s = sum(self.rest_of_plan().slots_s())
        return planned_s * self.spent_s / self.planned_s if self.planned_s else planned_s

    def _keep_costs_of(self, lab: Lab, error: BaseException) -> None:
        """Record the lab's costs in a session that measured nothing: its hosts may still have been paid for."""
        if files := lab.keep_costs(self.writer.folder, f"session-{self.number}"):
            self.writer.start({"kind": lab.kind})
            self.writer.record(
                {"event": "lab-closed", "files": [file.as_dict() for file in files]},
                {"event": "interrupted", "reason": _reason(error)},
            )

    def _keep_of_lab(self, lab: Lab, opened_at_utc: str) -> None:
        """Write raw files about the lab itself: counters of links and devices, server logs."""
        if self.kept:
            return
        session, files = self.number, []
        name = f"counters.{session}.json" if session > 1 else "counters.json"
        for folder, counts in (("links", lab.counters()), ("devices", lab.devices())):
            if counts is not None:
                content = json.dumps(counts, indent=1).encode() + b"\n"
                ends = {"started_at_utc": opened_at_utc, "ended_at_utc": now_utc()}
                files.append(self.writer.keep(folder, name, content, **ends))
        files += lab.keep(self.writer.folder, f"session-{session}")
        for number, each in enumerate(self.watched, 1):
            files += each.keep(self.writer.folder, f"session-{session}.{number}", opened_at_utc, self.interrupted)
        if files:
            self.writer.record({"event": "lab-closed", "files": [file.as_dict() for file in files]})
        self.kept = True


class _Signals:
    """
    Handlers of SIGINT, SIGTERM and SIGHUP (the terminal was closed) in the main thread.

    While the lab opens, a signal raises an exception at once. Afterwards it is passed to the loop that waits for tests,
    so that no file stays incomplete. While the lab closes, the first two signals are ignored.
    """

    def __init__(self, news: queue.SimpleQueue[_Outcome | int], heard: threading.Event):
        self._news, self._heard, self._seen, self._at_once, self._earlier = news, heard, [], True, {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._earlier[number] = signal.signal(number, self._hear)

    def _hear(self, number: int, frame: object) -> None:
        self._seen.append(number)
        self._heard.set()
        if self._at_once or len(self._seen) >= 3:
            raise _exception(number)
        self._news.put(int(number))

    def wait_for_the_loop(self) -> None:
        self._at_once = False

    def raise_if_any(self) -> None:
        if self._seen:
            raise _exception(self._seen[0])

    def restore(self) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "SIGINT"
    if isinstance(error, SystemExit) and error.code in (128 + signal.SIGTERM, 128 + signal.SIGHUP):
        return signal.Signals(error.code - 128).name
    return f"{type(error).__name__}: {error}"
