"""
Whether intervals cover: every method tried on simulated data whose answer is known.

`study` runs a study, `verdicts` says what its table means, `effects` are the kinds of simulated surveys; every
other module is a study. `make validity` runs all and writes data/validity. Imports `stats`, `findings`, `wording`,
`errors`, `places`; never a lab.
"""

from .study import FIRST, Outcome, describe, read, run, studies
from .verdicts import agreement, asked, beyond, finding, outside, overview, shown, tables

__all__ = [
    "FIRST",
    "Outcome",
    "agreement",
    "asked",
    "beyond",
    "describe",
    "finding",
    "outside",
    "overview",
    "read",
    "run",
    "shown",
    "studies",
    "tables",
]
