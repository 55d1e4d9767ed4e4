"""End-to-end tails of two systems: at growing rates and partitions, by percentile, and what the links allow."""

from .allowed import allowed
from .evidence import evidence
from .percentiles import percentiles
from .side_by_side import side_by_side
from .trials import trials

__all__ = ["allowed", "evidence", "percentiles", "side_by_side", "trials"]
