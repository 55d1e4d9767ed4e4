"""Analyse latency while brokers restart in turn, while a broker is slow, and while one broker leads all partitions."""

from . import claims
from .claims import differ_in_clients, evidence
from .credits import disk_credits
from .degraded import degraded
from .detection import detection
from .restarts import leader_skew, reassignment, restarts
from .trials import trials

__all__ = ["claims", "degraded", "detection", "differ_in_clients", "disk_credits", "evidence", "leader_skew"]
__all__ += ["reassignment", "restarts", "trials"]
