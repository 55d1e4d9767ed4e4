"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from .degraded import degraded
from .evidence import differ_in_clients, evidence
from .piled import piled
from .restarts import restarts
from .trials import trials

__all__ = ["degraded", "differ_in_clients", "evidence", "piled", "restarts", "trials"]
