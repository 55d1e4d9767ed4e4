"""What this page measures."""

from .cut_figure import cut_timeline

__all__ = [
    "cut_timeline",
]
