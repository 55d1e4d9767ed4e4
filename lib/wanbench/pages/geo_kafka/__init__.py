"""One Kafka cluster over three regions: replica placement, effects of settings, limits, cross-region traffic."""

from . import claims
from .against_baseline import against_baseline
from .bounds import bounds
from .changes import Change, Times, cost_changes, modelled_changes
from .client_rack import client_rack
from .counted_bytes import count_region_bytes
from .curves import curves
from .evidence import evidence
from .placement import placement
from .scalability import fit_scalability
from .surface import fit_surface
from .together import together
from .tornado import tornado

__all__ = [
    "Change",
    "Times",
    "against_baseline",
    "bounds",
    "claims",
    "client_rack",
    "cost_changes",
    "count_region_bytes",
    "curves",
    "evidence",
    "fit_scalability",
    "fit_surface",
    "modelled_changes",
    "placement",
    "together",
    "tornado",
]
