"""Plans: which tests run, in which order, and how much time and data they are expected to take."""

from .pairs import pair, rounds, select_pairs
from .plan import Plan, Test, Trial, in_blocks, make_plan, make_trials, warmed_up

__all__ = [
    "Plan",
    "Test",
    "Trial",
    "in_blocks",
    "make_plan",
    "make_trials",
    "pair",
    "rounds",
    "select_pairs",
    "warmed_up",
]
