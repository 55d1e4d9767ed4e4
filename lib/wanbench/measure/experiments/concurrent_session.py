"""Run an experiment in a thread while a load runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from wanbench.errors import LATER, LabError
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import ExperimentError
from .session import Session


class Concurrent:
    """Base class of experiments that run during a load; `session` is the class that runs such an experiment once."""

    session: ClassVar[type[ConcurrentSession]]
    waits_for_load: ClassVar[bool] = True

    def concurrently(
        self, source: Host, target: Host, folder: Path, stem: str, *, sending: Callable[[], bool] | None = None
    ) -> AbstractContextManager[list[RawFile]]:
        """
        Run while the `with` block runs; after the block, the yielded list contains the raw files.

        `sending` returns True once the load sends, or False if it never will; if `sending` is None, times count from
        the start. Raise ExperimentError if the experiment cannot start or could not undo something, but never replace
        an exception raised in the block.
        """
        return self.session(self, source, folder, stem, sending).in_background()

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """Run without a load, for `duration_s` or until done; raise errors as `concurrently` does."""
        return self.session(self, source, folder, stem).run()


class ConcurrentSession(Session):
    """
    A session that runs in a thread during a load (`in_background`), or for a while without a load (`run`).

    `sending` waits until the load sends and returns True, or returns False if it never will. A subclass defines
    `_document`, and overrides `_begin`, `_follow` and `_end` as needed.
    """

    file = "session"
    """The session's own file is <stem>.<file>.json."""
    join_s = 240.0
    """Timeout for actions that are still under way at the end, waiting for the cluster."""

    def __init__(self, settings: Any, source: Host, folder: Path, stem: str, sending: Callable[[], bool] | None = None):
        super().__init__(settings, folder, stem)
        self.host, self.sending = source, sending
        self.faults: list[str] = []
        self._over = threading.Event()
        self._thread: threading.Thread = LATER

    @contextmanager
    def in_background(self) -> Generator[list[RawFile]]:
        """
        Run while the `with` block runs; after the block, the yielded list contains the raw files.

        Raise ExperimentError if the session cannot start, fails, or cannot undo something, but never replace an
        exception raised in the block.
        """
        name = self.settings.name
        try:
            self._begin()
            self._thread = threading.Thread(target=self._drive, name=name, daemon=True)
            self._thread.start()
        except BaseException as error:
            self._finish()
            if isinstance(error, LabError):
                raise ExperimentError(f"{name} cannot start: {error}", self.files) from error
            raise
        succeeded = False
        try:
            yield self.files
            succeeded = True
        finally:
            self._finish()
            if self.faults and succeeded:
                raise ExperimentError(f"{name}: {'; '.join(self.faults)}", self.files)

    def run(self) -> list[RawFile]:
        """Run this session without a load, at most `duration_s`; return its files, raise as `in_background`."""
        with self.in_background() as files:
            self._thread.join(self.settings.duration_s)
        return files

    def _drive(self) -> None:
        try:
            if self.sending is None or self.sending():
                self._follow()
        except LabError as error:
            self.faults.append(str(error))
        except Exception as error:  # an exception that ends a thread would go unnoticed
            self.faults.append(f"{type(error).__name__}: {error}")

    def _finish(self) -> None:
        """Stop the thread, undo everything, and write the files."""
        self._over.set()
        try:
            if self._thread is not None:
                self._thread.join(self.join_s)
                if self._thread.is_alive():
                    self.faults.append(f"an action did not end within {self.join_s:g} s")
            self._end()
        finally:
            ended = [program for program in self._programs() if program.done is not None]
            programs = [self._keep_program(program, self._content) for program in ended]
            document = {"format": 1, "settings": asdict(self.settings), **self._document()}
            self._write(f"{self.file}.json", document | {"faults": self.faults, "programs": programs})

    def _begin(self) -> None:
        """Prepare, and start programs."""

    def _follow(self) -> None:
        """Do the session's work, in the thread, once the load sends."""

    def _end(self) -> None:
        """Stop programs, and undo everything."""

    def _document(self) -> dict[str, Any]:
        """Return the content of the session's file, apart from settings, failures and programs."""
        raise NotImplementedError

    def _content(self, printed: bytes) -> bytes:
        """Return what is kept of a program's output."""
        return printed

    def _is_over(self) -> bool:
        return self._over.is_set()

    def _attempt(self, do: Callable[[], object]) -> None:
        """Run a function; record its failure."""
        try:
            do()
        except LabError as error:
            self.faults.append(str(error))
