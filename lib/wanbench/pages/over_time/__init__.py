"""Find changes over the time of a campaign: the levels of every pair, its routes, and rhythms of the day and week."""

from .pair_changes import changes_of_pairs
from .rhythm import rhythm
from .routes import route_changes
from .values import open_campaign, simulated_year

__all__ = ["changes_of_pairs", "open_campaign", "rhythm", "route_changes", "simulated_year"]
