"""
Plausibility rules, which flag values of tables, each with the rule, the finding, and the likely cause.

`check` reads the tables of a run or an import and returns table `flags`; it drops nothing. `report` summarises flags,
`suspects` marks the flagged rows of a table, `geolocate` locates a region by its round trips. `RULES` lists the rules.
`clean_tables` and `planted_faults` make the tables on which the rules themselves are tested.

The rules cannot see:

- from and to exchanged in RTTs, or in rates that both ends may send,
- RTTs of a single pair halved or doubled in both directions, where light allows it,
- halved RTTs of a region if most are above light in fibre,
- bytes for bits in some rows, without bytes or a link to compare with,
- rates of all rows 1,000 times too small, without anything to compare with,
- a limiter at a number that is not round,
- a copied day whose values have few digits,
- an answer from near the sender over less than 500 km, or after 1 ms and more.
"""

from .rates import known_instances
from .rule import RULES, Rule
from .rules import Report, check, geolocate, report, suspects

__all__ = ["RULES", "Report", "Rule", "check", "geolocate", "known_instances", "report", "suspects"]
