"""
Figures: each function takes tables or estimates and returns a `go.Figure`. Reads nothing, shows nothing.

Imports `stats`, `wording` and `errors`. `theme` holds the one template, the colours, and what every figure
carries in `layout.meta`: `name` (file stem), `alt`, `caption`, and `csv`, the numbers behind it.
"""

from .calibration import cut_timeline, requested_against_delivered
from .distance import path_inflation, rtt_against_distance, throughput_against_distance
from .flags import flags_by_rule
from .geolocation import geolocation
from .map import link_map, region_map
from .misplaced import misplaced
from .schedule import rounds
from .theme import SIZES
from .throughput import throughput_against_rtt

__all__ = [
    "SIZES",
    "cut_timeline",
    "flags_by_rule",
    "geolocation",
    "link_map",
    "misplaced",
    "path_inflation",
    "region_map",
    "requested_against_delivered",
    "rounds",
    "rtt_against_distance",
    "throughput_against_distance",
    "throughput_against_rtt",
]
