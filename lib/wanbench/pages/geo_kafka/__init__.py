"""Analyse one Kafka cluster across three regions: effects of settings, limits, cross-region traffic and cost."""

from wanbench.pages.geo_kafka.costs import tornado
from wanbench.pages.geo_kafka.region_bytes import client_rack, count_region_bytes

from . import claims
from .against_baseline import against_baseline
from .bounds import bounds
from .curves import curves
from .evidence import evidence
from .placement import placement
from .scalability import fit_scalability

__all__ = ["against_baseline", "bounds", "claims", "client_rack", "count_region_bytes", "curves", "evidence"]
__all__ += ["fit_scalability", "placement", "tornado"]
