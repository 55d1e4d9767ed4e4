"""The common form of analysis results: estimates with intervals, sentences and cautions, as text, table and HTML."""

from .estimate import PAIRS_INDEPENDENT, VALUES_INDEPENDENT, Estimate, Interval, exact_binomial
from .result import Result, cautions_html, estimates_shown, html, table, table_html

__all__ = [
    "PAIRS_INDEPENDENT",
    "VALUES_INDEPENDENT",
    "Estimate",
    "Interval",
    "Result",
    "cautions_html",
    "estimates_shown",
    "exact_binomial",
    "html",
    "table",
    "table_html",
]
