"""What all tests need."""

import signal


def pytest_configure(config):
    """
    A shell that starts the tests in the background has them ignore SIGINT, and nohup SIGHUP; some tests send them, and
    what they start would ignore them as well.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
