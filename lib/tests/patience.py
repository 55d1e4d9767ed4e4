"""Patience with a machine that has other things to do."""

import functools
import time
from collections.abc import Callable
from contextlib import suppress


def comes_about(condition: Callable[[], object], patience_s: float = 120.0, every_s: float = 0.02) -> bool:
    """Whether the condition came true before patience ran out, which it does only on a machine that hangs."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True


def three_attempts(test):
    """Three attempts, one of which must pass: a processor that looks elsewhere for a while spoils one."""

    @functools.wraps(test)
    def patient(*arguments, **named):
        for _ in range(2):
            with suppress(AssertionError):
                return test(*arguments, **named)
        return test(*arguments, **named)

    return patient
