"""Messages per second and bytes per message by compression level of Kafka's producer."""

from . import claims
from .levels import by_level

__all__ = ["by_level", "claims"]
