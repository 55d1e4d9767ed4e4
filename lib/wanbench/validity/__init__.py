"""
Whether intervals cover: every method tried on simulated data whose answer is known.

`study` runs a study; every other module is one. `make validity` runs all and writes data/validity. Imports
`stats`, `errors`, `places`; never a lab.
"""

from .study import Outcome, describe, read, run, studies

__all__ = ["Outcome", "describe", "read", "run", "studies"]
