"""Compute what a Kafka cluster costs, with an interval, from dated list prices."""

from .deployment import Deployment, cluster_cost
from .price_list import price, price_list

__all__ = ["Deployment", "cluster_cost", "price", "price_list"]
