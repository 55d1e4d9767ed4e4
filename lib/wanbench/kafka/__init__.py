"""
Kafka on the hosts of a lab: a cluster of our own, or one that runs elsewhere.

`experiments`, `measure` and notebooks may import it; it imports `errors`, `labs.base`, `runs` and `places`.
"""

from .available import unavailable
from .cluster import Cluster
from .errors import ClusterError
from .placement import Broker

__all__ = ["Broker", "Cluster", "ClusterError", "unavailable"]
