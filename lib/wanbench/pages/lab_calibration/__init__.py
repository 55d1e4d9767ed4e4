"""Check whether a lab's links do what their settings say: drops, lateness, bursts of loss, queues and schedules."""

from .cut_figure import cut_timeline
from .drops import by_part, lateness, link_drops
from .properties import drop_law, loss_bursts, marks, mtu, relay_cost, schedule, waits

__all__ = ["by_part", "cut_timeline", "drop_law", "lateness", "link_drops", "loss_bursts", "marks", "mtu"]
__all__ += ["relay_cost", "schedule", "waits"]
