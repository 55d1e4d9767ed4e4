"""What a Kafka cluster costs: dated list prices, and the cost of a deployment with its interval."""

from .deployment import Deployment, cluster_cost
from .price_list import price, price_list

__all__ = ["Deployment", "cluster_cost", "price", "price_list"]
