"""
What a Kafka cluster costs: per hour, per million messages, per GB and per year, with the interval of what was measured.

`price_list` reads dated prices, `counted_bytes` what links carried per message, `deployment` holds every input with its
range, `cluster_cost` prices it, `changes` compares it with other settings, `tornado` shows the sensitivity to each
input.
"""

from .cluster_cost import cluster_cost
from .deployment import Deployment
from .price_list import price, price_list

__all__ = ["Deployment", "cluster_cost", "price", "price_list"]
