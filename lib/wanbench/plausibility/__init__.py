"""
The plausibility gate: doubts about the values of tables, each with its rule, figure and likely cause.

`check` reads the tables of a run or an import and returns table `flags`; nothing is dropped. `report` tells them,
`suspects` says which rows of a table they concern, `geolocate` where a region may be by its round trips. `RULES` are
what is checked; `simulate` and `faults` make tables by which the gate itself is judged. Imports `tables`, `regions`,
`formatting`, `errors`; analysing code may import it.

What it cannot see: from and to exchanged in RTTs, which are the same either way, and in rates below what both ends may
send; the RTT of a single pair halved, or doubled, both ways, where light allows it; half RTTs of a region most of which
are longer than light in fibre takes; bytes for bits in some of the rows, where neither bytes nor a link tell; rates of
all rows 1,000 times too small, where nothing tells; a limiter at a number that is not round; a copied day whose values
have few digits; an answer from near the sender over less than 500 km, or one of 1 ms and more.
"""

from .misplaced_figure import misplaced
from .rate_ceilings import known_instances
from .report import Report, report, suspects
from .rules import RULES, check, geolocate

__all__ = ["RULES", "Report", "check", "geolocate", "known_instances", "misplaced", "report", "suspects"]
