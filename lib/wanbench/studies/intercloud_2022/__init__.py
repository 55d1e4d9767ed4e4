"""The survey of 2022 re-analysed: units of a column, charts with intervals, repeats, scatter, matched cities."""

from .charts import charts
from .matched import matched
from .nearest import nearest
from .repeats import repeats
from .scatter import scatter
from .unit_readings import column_readings
from .variants import survey_readings, variants

__all__ = [
    "charts", "column_readings", "matched", "nearest", "repeats", "scatter", "survey_readings", "variants",
]  # fmt: skip
