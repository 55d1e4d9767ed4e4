"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from . import claims
from .claims import differ_in_clients, evidence
from .degraded import degraded
from .detection import detection
from .restarts import leader_skew, restarts
from .trials import trials

__all__ = ["claims", "degraded", "detection", "differ_in_clients", "evidence", "leader_skew", "restarts", "trials"]
