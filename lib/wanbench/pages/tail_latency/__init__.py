"""Compare the tails of end-to-end latency of two systems, by rate, by partitions and by percentile."""

from . import claims
from .allowed import allowed
from .best_rates import best_rates
from .claims import evidence
from .knees import highest_before_knees, knees
from .pauses import causes, per_second
from .quantiles import benchmark, percentiles
from .side_by_side import side_by_side
from .trials import rereads, settled, trials

__all__ = ["allowed", "benchmark", "best_rates", "causes", "claims", "evidence", "knees", "per_second"]
__all__ += ["highest_before_knees", "percentiles", "rereads", "settled", "side_by_side", "trials"]
