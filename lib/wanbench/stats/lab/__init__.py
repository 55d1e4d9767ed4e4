"""The emulated lab judged: requested against delivered, drops, utilisation."""

from .calibration_figure import cut_timeline, requested_against_delivered

__all__ = ["cut_timeline", "requested_against_delivered"]
