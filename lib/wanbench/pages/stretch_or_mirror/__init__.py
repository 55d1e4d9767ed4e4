"""Compare a Kafka cluster that is stretched over regions with a mirrored pair: losses, outages, latency, traffic."""

from .gaps import gaps
from .losses import losses
from .steady import steady

__all__ = ["gaps", "losses", "steady"]
