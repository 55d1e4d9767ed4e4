"""
A campaign: a plan carried out on a lab, resumed where it was stopped, or replayed from its recording.

`start` chooses the lab, `execute` measures, `calibrate` tries link settings, `trial_plans` plans trials of Kafka and
`fault_plans` those of its faults, `progress` reports.
"""

from .calibrate import calibrate
from .execute import measure
from .fault_plans import fault_trials
from .start import carry_out, recording
from .trial_plans import Path, thesis, two_paths

__all__ = ["Path", "calibrate", "carry_out", "fault_trials", "measure", "recording", "thesis", "two_paths"]
