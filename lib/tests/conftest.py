"""What all tests need."""

import signal

import pytest
from hypothesis import HealthCheck, settings

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """
    Which tests stay in one process where several run side by side: those of one module, as they share its fixtures;
    all that make a lab, which would compete for the processors; all that read the example site, which is built once.
    """
    for item in items:
        if "lab" in item.keywords:
            group = "lab"
        elif hasattr(getattr(item, "module", None), "built_site"):
            group = "pages"
        else:
            group = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
