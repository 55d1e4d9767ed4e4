"""
A campaign: run a plan on a lab, resume it, or replay its recording.

`start` chooses the lab, `execute` measures, `calibrate` tries link settings, `trial_plans`, `one_at_a_time`,
`in_blocks`, `sizes_of_brokers`, `disturbances`, `together`, `systems_by_steps` and `rate_searches` (of `systems`) plan
trials of Kafka, `fault_plans` plans fault episodes, `check_trials` rejects impossible trials, `progress` reports.
"""

from .execute import measure
from .in_blocks import in_blocks
from .start import recording, run

__all__ = ["in_blocks", "measure", "recording", "run"]
