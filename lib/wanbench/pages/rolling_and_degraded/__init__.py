"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from . import claims
from .degraded import degraded
from .detection import detection
from .evidence import differ_in_clients, evidence
from .piled import piled
from .restarts import restarts
from .trials import trials

__all__ = [
    "claims",
    "degraded",
    "detection",
    "differ_in_clients",
    "evidence",
    "piled",
    "restarts",
    "trials",
]
