"""Calibrate a lab: dropped and late packets on its links, and echoes around a cut."""

from .cut_figure import cut_timeline
from .drops import lateness, link_drops
from .properties import loss_bursts, marks, mtu, relay_cost, schedule, waits

__all__ = [
    "cut_timeline", "lateness", "link_drops", "loss_bursts", "marks", "mtu", "relay_cost", "schedule", "waits",
]  # fmt: skip
