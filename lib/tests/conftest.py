"""What all tests need."""

import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from wanbench import kafka
from wanbench.labs.local import LocalLab

for name, examples in (("test", 200), ("fuzz", 10_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name == "test",  # the same examples each time, so that a change alone decides
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
settings.load_profile("test")


def pytest_configure(config):
    """
    A shell that starts the tests in the background has them ignore SIGINT, and nohup SIGHUP; some tests send them, and
    what they start would ignore them as well.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@cache
def missing(mark: str) -> str | None:
    """Why tests with this mark cannot run on this machine; None if they can. Found once."""
    if mark == "lab":
        return LocalLab.unavailable()
    return LocalLab.unavailable() or kafka.unavailable()


def pytest_runtest_setup(item):
    """Skip what needs a lab or a cluster where there can be none."""
    for mark in ("lab", "kafka"):
        if item.get_closest_marker(mark) and (reason := missing(mark)):
            pytest.skip(reason)


class ByModule(LoadScopeScheduling):
    """
    Which tests stay in one process where several run side by side: those of one module, as they share its fixtures;
    all that use the cluster of the tests; all that make their own lab; all that read the example site, which is
    built once.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return _group(self.config.rootpath / module) or module


@cache
def _group(path: Path) -> str | None:
    text = path.read_text()
    return next(
        (mark for mark in ("pytest.mark.kafka", "pytest.mark.lab", "built_site") if mark in text), None
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """xdist's own groups by marker do nothing with pytest 9.2, whose test names cannot be changed."""
    return ByModule(config, log)
