"""
Flag implausible values in tables, and name the likely cause.

`check` reads the tables of a run or an import and returns table `flags`; it removes no rows. `report` summarises flags,
and `suspects` marks the flagged rows of a table. `RULES` lists the rules. The rules themselves are tested on simulated
tables with known faults (`simulations.planted_faults`).

The rules do not detect:

- exchanged directions of RTTs, or of rates that both ends are able to send,
- RTTs of a single pair that are halved or doubled in both directions, if light allows them,
- halved RTTs of a region, if most of them are still longer than light in fibre takes,
- bytes per second in some rows of a column in bit/s, without transferred bytes or a link to compare with,
- rates 1,000 times too small in all rows, without other values to compare with,
- a rate limiter whose rate is not a round number,
- a copied day whose values have few digits,
- an answer from near the sender, if the pair is less than 500 km apart or the answer takes 1 ms or more.
"""

from .rates import known_instances
from .rule import RULES, Rule
from .rules import Report, check, report, suspects

__all__ = ["RULES", "Report", "Rule", "check", "known_instances", "report", "suspects"]
