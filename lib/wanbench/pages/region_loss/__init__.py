"""One region of a three-region Kafka cluster goes dark: phases of the outage, cost of settings, self-healing."""

from .article import article
from .checker import check_checker
from .client_errors import client_errors
from .comparison import compare_settings
from .episodes import episodes
from .healing import healing
from .losses import losses
from .lost_when import lost_when
from .phases import phases
from .planner import planned
from .recovery import recovery
from .timeline import timeline

__all__ = [
    "article",
    "check_checker",
    "client_errors",
    "compare_settings",
    "episodes",
    "healing",
    "losses",
    "lost_when",
    "phases",
    "planned",
    "recovery",
    "timeline",
]
