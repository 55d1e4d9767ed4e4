"""One Kafka over three regions: how replicas lie, what each setting gains, what limits it, what consumers fetch from far."""

from .curves import curves

__all__ = ["curves"]
