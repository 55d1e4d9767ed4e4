"""Compare one Kafka cluster stretched over regions with a pair of clusters, of which one mirrors the other."""

from .gaps import gaps
from .losses import losses
from .steady import steady

__all__ = ["gaps", "losses", "steady"]
