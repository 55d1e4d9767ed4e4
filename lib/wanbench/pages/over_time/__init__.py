"""Changes of a campaign over time: levels of every pair and since when they hold, times of day and weekdays, routes."""

from .pair_changes import changes_of_pairs
from .rhythm import rhythm
from .routes import route_changes
from .values import simulated_year, test_values

__all__ = ["changes_of_pairs", "rhythm", "route_changes", "simulated_year", "test_values"]
