"""The errors that wanbench raises on purpose."""

from pathlib import Path
from typing import Any

LATER: Any = None  # value of an attribute that has no value yet, but always has one when it is used


class WanbenchError(Exception):
    """Base class of all errors raised on purpose."""


class ParameterError(WanbenchError, ValueError):
    """A parameter is unknown, of the wrong type, or out of range."""


class RawDataError(WanbenchError, ValueError):
    """
    A raw file is invalid: line `line_number` holds `found` where `expected` is required.

    `line_number` counts from 1, or is None for the whole file. Long texts are shortened.
    """

    MAX_FOUND = 120  # a damaged file may be one long line
    MAX_EXPECTED = 1000  # enough to list the columns of a table

    def __init__(self, path: str | Path, line_number: int | None, found: object, expected: str):
        self.path, self.line_number = str(path), line_number
        self.found = _shortened(found, self.MAX_FOUND)
        self.expected = _shortened(expected, self.MAX_EXPECTED)
        place = self.path.encode("utf-8", "backslashreplace").decode()  # a file name may hold any bytes
        place += "" if line_number is None else f":{line_number}"
        super().__init__(f"{place}: expected {self.expected}, found {self.found!r}.")

    def row(self) -> dict[str, object]:
        """Return the error as a row of table `unread`, without the file's path."""
        return {"line_number": self.line_number, "found": self.found, "expected": self.expected}

    def __reduce__(self) -> tuple[object, ...]:
        return RawDataError, (self.path, self.line_number, self.found, self.expected)


def _shortened(text: object, length: int) -> str:
    text = str(text)
    return text if len(text) <= length else text[: length - 3] + "..."


class LabError(WanbenchError, RuntimeError):
    """A lab cannot be opened, or one of its hosts does not answer."""


class CommandError(LabError):
    """
    A command on a host failed or timed out.

    `completed`, a `wanbench.measure.labs.base.Completed`, holds output and exit status; after a timeout, it holds the
    output so far and the status -9. `completed` is None if the output is not known.
    """

    completed: Any = None


class ClusterError(LabError):
    """
    A Kafka cluster cannot be started, or did not carry out a request.

    `log` is the whole log of the broker concerned, or empty.
    """

    def __init__(self, reason: str, log: bytes = b""):
        super().__init__(reason)
        self.log = log

    def __reduce__(self) -> tuple[object, ...]:
        return ClusterError, (str(self), self.log)


class MissingDataError(WanbenchError, LookupError):
    """An analysis lacks data that were not measured, were not downloaded, or do not exist for this kind of lab."""
