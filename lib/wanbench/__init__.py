"""
wanbench: repeat, audit and extend claims about the network between clouds and about Kafka across it.

`import wanbench` gives a researcher everything the notebooks use, as `wanbench.<room>.<name>`; a module is loaded when
it is first named, so analysing does not load what measures.
"""

from importlib import import_module

__version__ = "0.1.0"


def submodules(package, names):
    """Return `__getattr__` and `__dir__` for a package that loads its submodules when they are first named."""
    allowed = names.split()

    def __getattr__(name):
        if name in allowed:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(allowed)}")

    return __getattr__, lambda: allowed


__getattr__, __dir__ = submodules(
    __name__, "designs figures findings folders measure methods pages publish read regions runs tables"
)
