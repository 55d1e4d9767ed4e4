"""Every error that wanbench raises on purpose."""


class WanbenchError(Exception):
    """Base of all errors raised on purpose; catch it to catch them all."""


class ParameterError(WanbenchError, ValueError):
    """A parameter is unknown, of the wrong type, or outside what is allowed."""


class RawDataError(WanbenchError, ValueError):
    """
    A raw file is invalid: at `line_number` (from 1; None for a fault of the whole file) stands `found` instead of
    `expected`; both are kept to their first characters.
    """

    MAX_FOUND = 120  # a damaged file may be one long line
    MAX_EXPECTED = 1000  # an expectation may list the columns of a table, and no more

    def __init__(self, path, line_number, found, expected):
        self.path, self.line_number = str(path), line_number
        self.found = _shortened(found, self.MAX_FOUND)
        self.expected = _shortened(expected, self.MAX_EXPECTED)
        place = self.path.encode("utf-8", "backslashreplace").decode()  # a file name may hold any bytes
        place += "" if line_number is None else f":{line_number}"
        super().__init__(f"{place}: expected {self.expected}, found {self.found!r}.")

    def row(self) -> dict:
        """A row of table unread, without its file."""
        return {"line_number": self.line_number, "found": self.found, "expected": self.expected}

    def __reduce__(self):
        return RawDataError, (self.path, self.line_number, self.found, self.expected)


def _shortened(text, length: int) -> str:
    text = str(text)
    return text if len(text) <= length else text[: length - 3] + "..."


class LabError(WanbenchError, RuntimeError):
    """A lab cannot be opened, or a host in it does not answer."""


class CommandError(LabError):
    """
    A command on a host ended with a status that was not allowed, or timed out.

    `completed` (a `wanbench.measure.labs.base.Completed`) holds all that it printed; if it still runs, the output so
    far and status -9. None: unknown.
    """

    completed = None


class ClusterError(LabError):
    """
    A Kafka cluster cannot be started, or failed to do what was requested.

    `log` is the whole log of the broker concerned; empty where there is none.
    """

    def __init__(self, reason: str, log: bytes = b""):
        super().__init__(reason)
        self.log = log

    def __reduce__(self):
        return ClusterError, (str(self), self.log)


class MissingDataError(WanbenchError, LookupError):
    """An analysis lacks data: not measured, not fetched, or not of this kind of lab."""
