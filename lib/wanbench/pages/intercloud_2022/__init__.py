"""The survey of 2022 re-analysed: units of a column, charts with intervals, correlations, repeats, scatter, cities."""

from . import claims
from .charts import charts
from .compare_models import compare_models
from .envelope import lower_envelope
from .geolocation import misplaced
from .matched_cities import matched_cities
from .nearest_region import nearest_region
from .readings import correlations, row_selections, unit_readings
from .shape import compare_shapes
from .variation import repeats, scatter

__all__ = [
    "charts",
    "claims",
    "compare_models",
    "compare_shapes",
    "correlations",
    "lower_envelope",
    "matched_cities",
    "misplaced",
    "nearest_region",
    "repeats",
    "row_selections",
    "scatter",
    "unit_readings",
]
