"""
wanbench: repeat, audit and extend claims about the network between clouds and about Kafka across it.

`import wanbench` gives a researcher everything the notebooks use, as `wanbench.<module>.<function>`; a module is
loaded when it is first named, so analysing does not load what measures.
"""

import sys
from importlib import import_module

# Notebooks hold no international addresses; to build their grammar, jsonschema takes up to 3 s in every process that
# reads a notebook or shows its first figure. It does without where this module cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)

__version__ = "0.1.0"

_MODULES = (
    "campaign", "claims", "designs", "experiments", "figures", "findings", "folders", "importers", "ingest", "kafka",
    "labs", "links", "plan", "plausibility", "publish", "regions", "runs", "stats", "studies", "tables", "validity",
)  # fmt: skip


def __getattr__(name):
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_MODULES)}")


def __dir__():
    return ["__version__", *_MODULES]
