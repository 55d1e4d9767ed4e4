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
        What stands there; long text is shortened in the message.
    expected : str
        What was expected instead.
    """

    def __init__(self, path, line_number, found, expected):
        self.path, self.line_number = str(path), line_number
        self.found, self.expected = str(found), expected
        place = self.path if line_number is None else f"{self.path}:{line_number}"
        shown = self.found if len(self.found) <= 120 else self.found[:117] + "..."
        super().__init__(f"{place}: expected {expected}, found {shown!r}.")

    def __reduce__(self):
        return RawDataError, (self.path, self.line_number, self.found, self.expected)


class LabError(WanbenchError, RuntimeError):
    """A lab cannot be opened, or a host in it does not answer."""


class CommandError(LabError):
    """A command on a host ended with a status that was not allowed, or ran out of time."""
