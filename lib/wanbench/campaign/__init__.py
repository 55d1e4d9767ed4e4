"""
A campaign: run a plan on a lab, resume it, or replay its recording.

`start` chooses the lab, `execute` measures, `calibrate` tries link settings, `trial_plans`, `one_at_a_time`,
`in_blocks`, `sizes_of_brokers`, `disturbances`, `together`, `systems_by_steps` and `rate_searches` (of `systems`) plan
trials of Kafka, `fault_plans` plans fault episodes, `check_trials` rejects impossible trials, `progress` reports.
"""

from .calibrate import calibrate
from .disturbances import piled, rolls, slowed, warmed_up
from .execute import measure
from .fault_plans import fault_trials
from .in_blocks import in_blocks
from .one_at_a_time import at_level, bandwidth_delay_bytes, one_at_a_time
from .rate_searches import rate_searches
from .sizes_of_brokers import sizes_of_brokers
from .start import carry_out, recording
from .systems import System, systems
from .systems_by_steps import systems_by_steps
from .together import together
from .trial_plans import Path, thesis, two_paths

__all__ = [
    "Path",
    "System",
    "at_level",
    "bandwidth_delay_bytes",
    "calibrate",
    "carry_out",
    "fault_trials",
    "in_blocks",
    "measure",
    "one_at_a_time",
    "piled",
    "rate_searches",
    "recording",
    "rolls",
    "sizes_of_brokers",
    "slowed",
    "systems",
    "systems_by_steps",
    "thesis",
    "together",
    "two_paths",
    "warmed_up",
]
