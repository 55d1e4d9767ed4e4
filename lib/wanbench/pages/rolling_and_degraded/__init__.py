"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from . import claims
from .degraded import degraded
from .detection import detection
from .evidence import differ_in_clients, evidence
from .leader_skew import leader_skew
from .restarts import restarts
from .trials import trials

__all__ = ["claims", "degraded", "detection", "differ_in_clients", "evidence", "leader_skew", "restarts", "trials"]
