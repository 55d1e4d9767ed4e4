"""A private link against the internet: its table of RTTs, shares of producers, scaling down, what limits each trial."""

from .producer_shares import producer_shares
from .rtt_table import rtt_table
from .scales import compare_scales
from .thesis_limits import explain
from .traffic import traffic

__all__ = ["compare_scales", "explain", "producer_shares", "rtt_table", "traffic"]
