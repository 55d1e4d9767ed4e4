"""
The plausibility gate: doubts about the values of tables, each with its rule, figure and likely cause.

`check` reads the tables of a run or an import and returns table `flags`; nothing is dropped. Imports `tables`,
`regions`, `wording`, `errors`; analysing code may import it.
"""

from .checking import check

__all__ = ["check"]
