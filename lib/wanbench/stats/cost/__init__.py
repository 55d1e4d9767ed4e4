"""
What a Kafka cluster costs: per hour, per million messages, per GB and per year, with the interval of what was measured.

`price_list` reads dated prices, `counted_bytes` what links carried per message, `deployment` holds every input with its
range, `cluster_cost` prices it, `changes` compares it with other settings, `tornado` shows the sensitivity to each
input.
"""

from .changes import Change, Times, cost_changes, modelled_changes
from .cluster_cost import cluster_cost
from .counted_bytes import count_region_bytes
from .deployment import Deployment
from .price_list import price, price_list
from .tornado import tornado

__all__ = [
    "Change",
    "Deployment",
    "Times",
    "cluster_cost",
    "cost_changes",
    "count_region_bytes",
    "modelled_changes",
    "price",
    "price_list",
    "tornado",
]
