"""How long this machine keeps a process waiting: what a test that judges time cannot judge through."""

import subprocess
import sys

MAX_LATE_SHARE = 0.05
"""As much as tests that judge time allow a rate or a delay to be off by."""

SLEEPER = """
import select, sys, time
late_s, began = 0.0, time.monotonic()
now = began
while not select.select([sys.stdin], [], [], 0)[0]:
    before = now
    time.sleep(0.005)
    now = time.monotonic()
    late_s += max(now - before - 0.006, 0)
print(late_s / max(now - began, 0.005))
"""


class Wakeups:
    """
    A process that sleeps for 5 ms again and again, while this is entered.

    Attributes
    ----------
    late_share : float
        After the end: the share of the time that the process had to wait to run again, beyond 1 ms for each sleep.
    """

    def __enter__(self):
        command = [sys.executable, "-S", "-c", SLEEPER]
        self._sleeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *failure):
        with self._sleeper:
            self.late_share = float(self._sleeper.communicate(timeout=60)[0] or 0)
