"""
Simulation: the cost of crossing, which is the additional RTT of pairs whose regions are on different clouds.

The two clouds have 12 and 12, or 24 and 4 regions. Crossing costs 8 ms. In the setting "one cloud slower", each region
of the second cloud adds 25 ms, which must not appear as cost of crossing.
"""

from __future__ import annotations

import numpy as np

from wanbench.methods.regions.places import units
from wanbench.pages.intercloud_2022 import clouds
from wanbench.pages.intercloud_2022.clouds import cross_cloud

from . import effects as kinds
from .simulation import MAIN, NAIVE, Outcome

CROSSING_MS = 8.0
"""The true cost of crossing."""
SLOWER_MS = 25.0
"""Added by each region of the slower cloud: three times the cost of crossing, so confounding would be visible."""
BY_REGION_MS = 6.0
"""Standard deviation of the costs of crossing of single regions."""
SLOWER = "effects of regions; one cloud slower"
UNEVEN = "effects of regions, also on what crossing costs"
SIZES = {"12 and 12 regions": (12, 12), "24 and 4 regions": (24, 4)}
SETTINGS = [
    *({"regions": regions, "effects": effects} for regions in SIZES for effects in ("effects of regions", SLOWER)),
    {"regions": "12 and 12 regions", "effects": UNEVEN},
    {"regions": "12 and 12 regions", "effects": "effects shared by city"},
]
DATASETS = kinds.FEWER_DATASETS
LEVEL = 0.95


def trial(seed: int, regions: str, effects: str) -> list[Outcome]:
    """Simulate one survey, and make the fits of `clouds.compare_clouds`."""
    sizes, kind = SIZES[regions], effects if effects in kinds.KINDS else "effects of regions"
    pairs = kinds.survey(seed, sum(sizes), kind, kinds.on_rtt(kind))
    rng = np.random.default_rng([seed, 1])
    cloud = rng.permutation(np.repeat(["aws", "gcp"], sizes))
    names = [f"{cloud[k]}:{name.partition(':')[2]}" for k, name in enumerate(pairs.regions)]
    slow = SLOWER_MS * (cloud == "gcp") * (effects == SLOWER)
    uneven = BY_REGION_MS * rng.normal(size=len(names)) * (effects == UNEVEN)
    a, b = cells = pairs.first, pairs.second
    crosses = cross_cloud(names, a, b)
    value = pairs.frame.value.to_numpy() + (CROSSING_MS + uneven[a] + uneven[b]) * crosses
    value = value + slow[a] + slow[b]
    far = pairs.frame.distance_km.to_numpy() / 1000
    grouped = units(pairs)
    levels, _ = clouds.cloud_levels(names, cells, [crosses, far], grouped)
    part = clouds.fit_pairs(value, grouped, [crosses, far, *levels]).combination(np.eye(3 + len(levels))[1], LEVEL)
    return [
        Outcome("what crossing costs", method, ends.low, ends.high, CROSSING_MS)
        for method, ends in ((MAIN, part.interval), (NAIVE, part.naive))
    ]
