"""What this page measures."""

from .kafka_rate_search import KafkaRateSearch
from .openmessaging import OpenMessaging
from .openmessaging_files import Driver, Workload, read_driver, read_workload
from .rate_searches import rate_searches
from .systems import System, systems
from .systems_by_steps import systems_by_steps

__all__ = [
    "Driver",
    "KafkaRateSearch",
    "OpenMessaging",
    "System",
    "Workload",
    "rate_searches",
    "read_driver",
    "read_workload",
    "systems",
    "systems_by_steps",
]
