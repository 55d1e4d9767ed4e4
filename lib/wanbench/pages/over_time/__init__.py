"""Find changes of a campaign over time: levels of every pair, times of day and weekdays, routes."""

from .pair_changes import changes_of_pairs
from .rhythm import rhythm
from .routes import route_changes
from .values import open_campaign, simulated_year

__all__ = ["changes_of_pairs", "open_campaign", "rhythm", "route_changes", "simulated_year"]
