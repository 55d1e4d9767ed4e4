"""The survey of 2022 re-analysed: units of a column, charts with intervals, correlations, repeats, scatter, cities."""

from .charts import charts
from .correlations import correlations
from .matched_cities import matched_cities
from .nearest_region import nearest_region
from .repeats import repeats
from .row_selections import row_selections
from .scatter import scatter
from .unit_readings import unit_readings

__all__ = [
    "charts", "correlations", "matched_cities", "nearest_region", "repeats", "row_selections", "scatter",
    "unit_readings",
]  # fmt: skip
