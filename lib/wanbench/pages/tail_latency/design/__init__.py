"""Plan and run the measurements of page 08."""

from .openmessaging import OpenMessaging
from .openmessaging_files import read_driver, read_workload
from .openmessaging_open_loop import driver_of, to_open_loop, workload_of
from .systems import read_systems, systems_by_steps

__all__ = ["OpenMessaging", "driver_of", "read_driver", "read_systems", "read_workload", "systems_by_steps"]
__all__ += ["to_open_loop", "workload_of"]
