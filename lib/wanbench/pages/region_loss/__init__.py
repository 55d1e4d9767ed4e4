"""Analyse how a Kafka cluster across three regions survives the loss of one: lost records, outages and recovery."""

from .article import article
from .comparison import compare_settings
from .episodes import episodes
from .healing import healing
from .losses import losses
from .phases import phases
from .records import check_checker
from .recovery import recovery
from .timeline import timeline
from .timeouts import planned

__all__ = ["article", "check_checker", "compare_settings", "episodes", "healing", "losses"]
__all__ += ["phases", "planned", "recovery", "timeline"]
