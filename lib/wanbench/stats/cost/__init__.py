"""
What a Kafka cluster costs: per hour, per million messages, per GB and per year, with the interval of what was measured.

`price_list` reads dated prices, `deployment` holds every input with its range, `cluster_cost` prices it, `changes`
compares it with other settings, `tornado` says which input the price depends on.
"""

from .changes import Change, Times, cost_changes, modelled_changes
from .cluster_cost import cluster_cost
from .deployment import Deployment
from .price_list import price, price_list
from .tornado import tornado

__all__ = [
    "Change",
    "Deployment",
    "Times",
    "cluster_cost",
    "cost_changes",
    "modelled_changes",
    "price",
    "price_list",
    "tornado",
]
