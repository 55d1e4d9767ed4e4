"""
The plausibility gate: doubts about the values of tables, each with its rule, figure and likely cause.

`check` reads the tables of a run or an import and returns table `flags`; nothing is dropped. `report` tells them,
`suspects` says which rows of a table they concern, `geolocate` where a region may be by its round trips. `RULES` are
what is checked; `simulate` and `faults` make tables by which the gate itself is judged. Imports `tables`, `regions`,
`wording`, `errors`; analysing code may import it.
"""

from .ceilings import known_instances
from .checking import RULES, check, geolocate
from .report import Report, report, suspects

__all__ = ["RULES", "Report", "check", "geolocate", "known_instances", "report", "suspects"]
