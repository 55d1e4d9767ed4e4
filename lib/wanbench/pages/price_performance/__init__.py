"""
Which broker size carries the most messages per dollar: ranked costs with ties, the cost-latency frontier, full
resources, and metrics over time.
"""

from . import claims
from .costs import cost_per_billion
from .evidence import evidence
from .frontier import frontier
from .full_resource import full_resource
from .machine import enough_processors
from .over_time import over_time
from .prices import paid_over_listed, per_processor_hour
from .recount import recount_agrees
from .trials import size_trials

__all__ = [
    "claims",
    "cost_per_billion",
    "enough_processors",
    "evidence",
    "frontier",
    "full_resource",
    "over_time",
    "paid_over_listed",
    "per_processor_hour",
    "recount_agrees",
    "size_trials",
]
