"""Progress on stderr: a bar on a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

_LEAST_PAUSE_S = 10.0
_MOST_PAUSE_S = 60.0


class Progress:
    """
    Shows how many tests are done, failed and left, and the expected time left.

    If stderr is not a terminal, a line is printed at the end and after each tenth of the tests, at intervals of at
    least 10 and at most 60 s.

    Parameters
    ----------
    total : int
        Number of tests in the plan.
    done, failed : int
        Number of tests that are already done, or have failed.
    shown : bool
        False prints nothing.
    """

    def __init__(self, total: int, *, done: int = 0, failed: int = 0, shown: bool = True):
        self.total, self.done, self.failed, self.left_s = total, done, failed, None
        self._shown, self._bar = shown, None
        self._said_at, self._said_over = time.monotonic(), done + failed
        if shown and sys.stderr.isatty():
            self._bar = tqdm(
                total=total,
                initial=done,
                unit="test",
                file=sys.stderr,
                bar_format="{desc}{n_fmt}/{total_fmt} tests |{bar}| {elapsed}{postfix}",
            )
        self._say_if_due()

    def text(self) -> str:
        """The line: tests done, failed, left, and the expected time left."""
        left = self.total - self.done - self.failed
        time_left = "" if self.left_s is None or not left else f", about {_duration(self.left_s)} left"
        return f"{self.done} of {self.total} tests done, {self.failed} failed, {left} left{time_left}"

    def update(self, *, done: int, failed: int, left_s: float | None) -> None:
        """Report the current state; `left_s` is the expected time left."""
        step = done - self.done
        self.done, self.failed, self.left_s = done, failed, left_s
        if self._bar is not None:
            time_left = "" if left_s is None else f"about {_duration(left_s)} left"
            self._bar.set_postfix_str(", ".join(filter(None, [f"{failed} failed", time_left])), refresh=False)
            self._bar.update(step)
        self._say_if_due()

    def close(self) -> None:
        """Report the final state."""
        if self._bar is not None:
            self._bar.close()
        elif self._shown and self.done + self.failed != self._said_over:
            self._say()

    def _say_if_due(self):
        if not self._shown or self._bar is not None:
            return
        pause_s = time.monotonic() - self._said_at
        tenth = max(self.total / 10, 1)
        if pause_s >= _MOST_PAUSE_S or (
            pause_s >= _LEAST_PAUSE_S and self.done + self.failed >= self._said_over + tenth
        ):
            self._say()

    def _say(self):
        self._said_at, self._said_over = time.monotonic(), self.done + self.failed
        print(self.text(), file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
