"""Rolling restarts, slow brokers with and without demotion, and piled leaders: latency by episode, under one load."""

from .restarts import restarts
from .trials import trials

__all__ = ["restarts", "trials"]
