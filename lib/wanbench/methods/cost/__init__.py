"""What a Kafka cluster costs: dated prices, and the price of a deployment with the interval of what was measured."""

from .deployment import Deployment, cluster_cost
from .price_list import price, price_list

__all__ = ["Deployment", "cluster_cost", "price", "price_list"]
