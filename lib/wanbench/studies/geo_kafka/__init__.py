"""One Kafka over three regions: where replicas lie, what settings gain, what limits them, what crosses regions."""

from .bounds import bounds
from .curves import curves
from .evidence import evidence
from .together import together

__all__ = ["bounds", "curves", "evidence", "together"]
