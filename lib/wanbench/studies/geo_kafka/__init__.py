"""One Kafka over three regions: where replicas lie, what settings gain, what limits them, what crosses regions."""

from .curves import curves

__all__ = ["curves"]
