"""What this page measures."""

from .kafka_rate_search import KafkaRateSearch
from .openmessaging import OpenMessaging
from .rate_searches import rate_searches
from .systems import System, systems
from .systems_by_steps import systems_by_steps

__all__ = [
    "KafkaRateSearch",
    "OpenMessaging",
    "System",
    "rate_searches",
    "systems",
    "systems_by_steps",
]
