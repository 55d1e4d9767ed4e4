"""Analyse again the rows that a survey of 2022 published (source 002), and test the claims of its article."""

from . import claims
from .charts import charts
from .clouds import compare_clouds
from .compare_models import compare_models
from .matched_cities import matched_cities
from .nearest_region import nearest_region
from .readings import correlations, row_selections, unit_readings
from .variation import repeats, scatter

__all__ = ["charts", "claims", "compare_clouds", "compare_models", "correlations", "matched_cities", "nearest_region"]
__all__ += ["repeats", "row_selections", "scatter", "unit_readings"]
