"""The common form of analysis results: estimates with intervals, sentences and cautions, as text, table and HTML."""

from .estimate import (
    LEVEL,
    PAIRS_INDEPENDENT,
    VALUES_INDEPENDENT,
    Estimate,
    Interval,
    exact_binomial,
    t_interval,
    t_quantile,
    tails,
)
from .result import Result, RowsResult, cautions_html, formatted_estimates, table_html, text_table

__all__ = [
    "LEVEL",
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
    "tails",
    "text_table",
]
