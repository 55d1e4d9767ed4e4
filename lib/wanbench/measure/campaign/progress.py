"""Print how many tests of a plan are done, and the expected time left."""

import sys
import time

from wanbench.formatting import duration

_MIN_PAUSE_S = 10.0
_MAX_PAUSE_S = 60.0


class Progress:
    """
    Print to stderr how many tests are done, failed and left, and the expected time left.

    A line is printed after each tenth of the tests, unless the last line is less than 10 s old; after any test that
    ends more than 60 s after the last line; and at the end.
    """

    def __init__(self, total: int, *, done: int = 0, failed: int = 0):
        self.total, self.done, self.failed, self.left_s = total, done, failed, None
        self._printed_at, self._n_printed = time.monotonic(), done + failed

    def text(self) -> str:
        """Return the line to print: tests done, failed and left, and the expected time left."""
        left = self.total - self.done - self.failed
        time_left = "" if self.left_s is None or not left else f", about {duration(self.left_s)} left"
        return f"{self.done} of {self.total} tests done, {self.failed} failed, {left} left{time_left}"

    def update(self, *, done: int, failed: int, left_s: float | None) -> None:
        """Print a line if one is due; `left_s` is the expected time left."""
        self.done, self.failed, self.left_s = done, failed, left_s
        is_tenth = done + failed >= self._n_printed + max(self.total / 10, 1)
        if time.monotonic() - self._printed_at >= (_MIN_PAUSE_S if is_tenth else _MAX_PAUSE_S):
            self._print()

    def close(self) -> None:
        """Print the final numbers, unless the last line already has them."""
        if self.done + self.failed != self._n_printed:
            self._print()

    def _print(self):
        self._printed_at, self._n_printed = time.monotonic(), self.done + self.failed
        print(self.text(), file=sys.stderr, flush=True)
