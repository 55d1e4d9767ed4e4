"""
Repeat, audit and extend claims about the network between clouds and about Kafka across it.

`import wanbench` gives a researcher everything that the notebooks use, as `wanbench.<package>.<name>`. A module is
imported when it is first used, so an analysis does not import the modules that measure.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"


def submodules(package: str, names: str) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that imports its submodules when they are first used."""
    allowed = names.split()

    def __getattr__(name: str) -> ModuleType:
        if name in allowed:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(allowed)}")

    return __getattr__, lambda: allowed


__getattr__, __dir__ = submodules(
    __name__, "designs figures findings folders measure methods pages publish read regions runs tables"
)
