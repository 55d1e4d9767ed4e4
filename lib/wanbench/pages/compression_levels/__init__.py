"""Compare compression levels of Kafka's producer by messages per second and bytes per message."""

from . import claims
from .levels import by_level

__all__ = ["by_level", "claims"]
