"""Compare sizes of Kafka brokers by cost per message and by latency, and find the resource that limits each."""

from . import claims
from .claims import evidence
from .costs import cost_per_billion, frontier
from .credits import burst_credits
from .resources import full_resource
from .trials import paid_over_listed, per_processor_hour, size_trials

__all__ = ["burst_credits", "claims", "cost_per_billion", "evidence", "frontier", "full_resource"]
__all__ += ["paid_over_listed", "per_processor_hour", "size_trials"]
