"""What all tests need."""

import signal


def pytest_configure(config):
    """A shell that starts the tests in the background has them ignore SIGINT, which some of them send."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
