"""Patience with a machine that has other things to do."""

import functools
import time
from collections.abc import Callable
from contextlib import suppress

PATIENCE_S = 120.0
"""Ends a wait on a machine that hangs; it is no bound on how long anything may take."""
LOOK_S = 0.02


def comes_about(condition: Callable[[], object], patience_s: float = PATIENCE_S, every_s: float = LOOK_S) -> bool:
    """
    Whether the condition came true before patience ran out. Looking takes a third of the time at most, as some
    conditions start a process each time.
    """
    end = time.monotonic() + patience_s
    while True:
        began = time.monotonic()
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(max(every_s, 2 * (time.monotonic() - began)))


def three_attempts(test):
    """
    Three attempts, one of which must pass: a processor that looks elsewhere for a while spoils one. For tests with the
    mark `timing` alone, which judge delays and rates.
    """

    @functools.wraps(test)
    def patient(*arguments, **named):
        for _ in range(2):
            with suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return patient
