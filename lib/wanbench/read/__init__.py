"""Read raw output of tools and data that others published into tables, and flag implausible values."""

from wanbench import submodules

__getattr__, __dir__ = submodules(__name__, "importers ingest plausibility")
