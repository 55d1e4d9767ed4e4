"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from .degraded import degraded
from .evidence import evidence
from .piled import piled
from .restarts import restarts
from .trials import trials

__all__ = ["degraded", "evidence", "piled", "restarts", "trials"]
