"""A region of one Kafka over three goes dark: what is lost, for how long nothing is answered, what makes it so long."""

from .checker import check_checker
from .client_errors import client_errors
from .comparison import compare_settings
from .episodes import episodes
from .healing import healing
from .losses import losses
from .phases import phases
from .planner import planned
from .recovery import recovery
from .timeline import timeline

__all__ = [
    "check_checker",
    "client_errors",
    "compare_settings",
    "episodes",
    "healing",
    "losses",
    "phases",
    "planned",
    "recovery",
    "timeline",
]
