"""What labs of rented hosts share, whichever cloud they are on: agreed to, launched, measured on, always taken down."""

from .hosts import Instance, Order, Wanted
from .lab import RentedLab
from .resources import Resource, Resources, everywhere, take_down
from .several import SeveralClouds, on_one_cloud
from .sweep import sweep
from .tags import Tags

__all__ = [
    "Instance",
    "Order",
    "RentedLab",
    "Resource",
    "Resources",
    "SeveralClouds",
    "Tags",
    "Wanted",
    "everywhere",
    "on_one_cloud",
    "sweep",
    "take_down",
]
