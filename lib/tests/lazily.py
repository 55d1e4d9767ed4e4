"""Packages that take seconds to import, imported at their first use: each process of the tests collects all tests."""

from importlib import import_module


class lazily:
    """
    The module of this name, imported when an attribute is first asked for. Until then it is not among the imported
    ones, unlike that of `importlib.util.LazyLoader`: Hypothesis asks each of those for its file.
    """

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(import_module(self._name), attribute)
