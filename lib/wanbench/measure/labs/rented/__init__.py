"""
Rent hosts on any cloud: ask the user to agree to the cost, launch hosts, measure, and always delete everything again.
"""

from .hosts import Instance, Order, Wanted
from .lab import RentedLab
from .resources import Resource, Resources, Tags, everywhere, take_down
from .several import on_clouds, several_clouds
from .sweep import sweep

__all__ = ["Instance", "Order", "RentedLab", "Resource", "Resources", "Tags", "Wanted", "everywhere", "on_clouds"]
__all__ += ["several_clouds", "sweep", "take_down"]
