"""Does the lab deliver what it is asked for? Losses, late packets and cuts, counted on links and devices."""

from .cut_figure import cut_timeline
from .drops import device_drops, lateness, link_drops

__all__ = ["cut_timeline", "device_drops", "lateness", "link_drops"]
