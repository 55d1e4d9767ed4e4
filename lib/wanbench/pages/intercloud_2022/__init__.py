"""The survey of 2022 re-analysed: units of a column, charts with intervals, correlations, repeats, scatter, cities."""

from . import claims
from .charts import charts
from .compare_models import ModelComparison, compare_models
from .correlations import correlations
from .envelope import lower_envelope
from .matched_cities import matched_cities
from .misplaced_figure import misplaced
from .nearest_region import nearest_region
from .repeats import repeats
from .row_selections import row_selections
from .scatter import scatter
from .shape import compare_shapes
from .unit_readings import unit_readings

__all__ = [
    "ModelComparison",
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
]  # fmt: skip
