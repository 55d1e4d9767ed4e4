"""
Run a plan on a lab, resume a run, or open its recording.

`run` chooses the lab, checks that the lab can run the plan, and calls `measure`, which runs the plan and writes the run
folder. `recording` opens the committed recording of a plan.
"""

from .execute import measure
from .start import recording, run

__all__ = ["measure", "recording", "run"]
