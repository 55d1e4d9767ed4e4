"""End-to-end tails of two systems: by rate, partitions and percentile, their knees, and limits of the links."""

from . import claims
from .allowed import allowed
from .best_rates import best_rates
from .claims import evidence
from .knees import knees
from .pauses import causes
from .quantiles import benchmark, percentiles
from .side_by_side import side_by_side
from .trials import settled, trials

__all__ = ["allowed", "benchmark", "best_rates", "causes", "claims", "evidence", "knees", "percentiles"]
__all__ += ["settled", "side_by_side", "trials"]
