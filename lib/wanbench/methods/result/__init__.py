"""The common form of analysis results: estimates with intervals, sentences and cautions, as text, table and HTML."""

from .estimate import PAIRS_INDEPENDENT, VALUES_INDEPENDENT, Estimate, Interval, exact_binomial, t_interval, t_quantile
from .result import Result, RowsResult, cautions_html, formatted_estimates, table_html, text_table

__all__ = [
    "PAIRS_INDEPENDENT",
    "VALUES_INDEPENDENT",
    "Estimate",
    "Interval",
    "Result",
    "RowsResult",
    "cautions_html",
    "exact_binomial",
    "formatted_estimates",
    "t_interval",
    "t_quantile",
    "table_html",
    "text_table",
]
