"""One Kafka cluster over three regions: replica placement, effects of settings, limits, cross-region traffic."""

from .bounds import bounds
from .curves import curves
from .evidence import evidence
from .together import together

__all__ = ["bounds", "curves", "evidence", "together"]
