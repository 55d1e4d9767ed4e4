"""
A campaign: a plan carried out on a lab, resumed where it was stopped, or replayed from its recording.

`start` chooses the lab, `execute` measures, `calibrate` tries link settings, `trial_plans` and `one_at_a_time` plan
trials of Kafka, `check_trials` refuses those that cannot be measured, `progress` reports.
"""

from .calibrate import calibrate
from .execute import measure
from .one_at_a_time import at_level, bandwidth_delay_bytes, one_at_a_time
from .start import carry_out, recording
from .trial_plans import Path, thesis, two_paths

__all__ = [
    "Path",
    "at_level",
    "bandwidth_delay_bytes",
    "calibrate",
    "carry_out",
    "measure",
    "one_at_a_time",
    "recording",
    "thesis",
    "two_paths",
]
