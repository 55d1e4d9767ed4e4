"""Read what tools printed and what others published, and judge whether the values can be true."""

from wanbench import submodules

__getattr__, __dir__ = submodules(__name__, "importers ingest plausibility")
