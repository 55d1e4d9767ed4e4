"""
Run a plan on a lab, resume a run, or open its recording.

`run` chooses the lab and checks that it can run the plan; `measure` measures; `recording` opens a recording.
"""

from .execute import measure
from .start import recording, run

__all__ = ["measure", "recording", "run"]
