"""Packages that take seconds to import, imported at their first use: each process of the tests collects all tests."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec


def lazily(name):
    """The module of this name, which must be installed; it is imported when an attribute is first asked for."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
