"""Calibrate a lab: dropped and late packets on its links, and echoes around a cut."""

from .cut_figure import cut_timeline
from .drops import by_part, lateness, link_drops
from .properties import drop_law, loss_bursts, marks, mtu, relay_cost, schedule, waits

__all__ = [
    "by_part", "cut_timeline", "drop_law", "lateness", "link_drops", "loss_bursts", "marks", "mtu", "relay_cost",
    "schedule", "waits",
]  # fmt: skip
