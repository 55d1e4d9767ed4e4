"""One region of a three-region Kafka cluster goes dark: phases of the outage, cost of settings, self-healing."""

from .article import article
from .comparison import compare_settings
from .episodes import episodes
from .healing import healing
from .losses import client_errors, losses, lost_when
from .phases import phases
from .records import check_checker
from .recovery import recovery
from .timeline import timeline
from .timeouts import planned

__all__ = ["article", "check_checker", "client_errors", "compare_settings", "episodes", "healing", "losses"]
__all__ += ["lost_when", "phases", "planned", "recovery", "timeline"]
