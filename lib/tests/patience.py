"""Waiting for what must come about, without saying how soon: only a machine that hangs runs out of patience."""

import time
from collections.abc import Callable


def comes_about(condition: Callable[[], object], patience_s: float = 120.0, every_s: float = 0.02) -> bool:
    """Whether the condition came true before patience ran out."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
