"""Every error that wanbench raises on purpose. Anything may import this; it imports nothing."""


class WanbenchError(Exception):
    """Base of all errors raised on purpose; catch it to catch them all."""


class ParameterError(WanbenchError, ValueError):
    """A parameter is unknown, of the wrong type, or outside what is allowed."""


class RawDataError(WanbenchError, ValueError):
    """
    A raw file does not say what it should.

    Parameters
    ----------
    path : path-like
        The file.
    line_number : int or None
        1 for the first line; None where the fault belongs to the whole file.
    found : str
        What stands there; kept to its first `LONGEST_FOUND` characters.
    expected : str
        What was expected instead; kept to its first `LONGEST_EXPECTED` characters.
    """

    LONGEST_FOUND, LONGEST_EXPECTED = 120, 1000

    def __init__(self, path, line_number, found, expected):
        self.path, self.line_number = str(path), line_number
        self.found = _shortened(found, self.LONGEST_FOUND)
        self.expected = _shortened(expected, self.LONGEST_EXPECTED)
        place = self.path.encode("utf-8", "backslashreplace").decode()  # a name may hold any bytes
        place += "" if line_number is None else f":{line_number}"
        super().__init__(f"{place}: expected {self.expected}, found {self.found!r}.")

    def __reduce__(self):
        return RawDataError, (self.path, self.line_number, self.found, self.expected)


def _shortened(text, most: int) -> str:
    text = str(text)
    return text if len(text) <= most else text[: most - 3] + "..."


class LabError(WanbenchError, RuntimeError):
    """A lab cannot be opened, or a host in it does not answer."""


class CommandError(LabError):
    """A command on a host ended with a status that was not allowed, or ran out of time."""


class MissingDataError(WanbenchError, LookupError):
    """Data that an analysis needs are not there: not measured, not fetched, or not of this kind of lab."""
