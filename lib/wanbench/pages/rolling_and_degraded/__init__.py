"""Analyse latency under rolling restarts, slow brokers with and without demotion, and unbalanced leadership."""

from . import claims
from .claims import differ_in_clients, evidence
from .degraded import degraded
from .detection import detection
from .restarts import leader_skew, restarts
from .trials import trials

__all__ = ["claims", "degraded", "detection", "differ_in_clients", "evidence", "leader_skew", "restarts", "trials"]
