"""Two clouds compared over the cities where both are."""

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.pages import intercloud_2022


def cities(n=7, crossing_ms=4.0, factor=0.8, seed=0, noise=0.2):
    """Two regions per city, one of each cloud; crossing costs a known time and a known share of throughput."""
    rng = np.random.default_rng(seed)
    place = np.sort(rng.uniform(0, 12_000, n))
    rows = []
    for a in range(2 * n):
        for b in range(2 * n):
            if a == b:
                continue
            km = abs(place[a // 2] - place[b // 2])
            crosses = a % 2 != b % 2
            rows.append(
                {
                    "from_region": f"{('aws', 'gcp')[a % 2]}:c{a // 2}",
                    "to_region": f"{('aws', 'gcp')[b % 2]}:c{b // 2}",
                    "from_cloud": ("aws", "gcp")[a % 2],
                    "to_cloud": ("aws", "gcp")[b % 2],
                    "distance_km": km,
                    "rtt_ms": 5 + km / 70 + crossing_ms * crosses + rng.normal(0, noise) * (a // 2 != b // 2),
                    "throughput_bps": 1e9 * np.exp(-km / 5_000) * factor**crosses,
                }
            )
    return pd.DataFrame(rows)


def test_what_crossing_costs_is_found_over_the_same_cities():
    found = intercloud_2022.matched_cities(cities())
    assert found.difference.n == 21
    assert found.difference.low < 4.0 < found.difference.high
    assert found.difference.estimate == pytest.approx(4.0, abs=0.3)
    ratio = intercloud_2022.matched_cities(cities(), column="throughput_bps").difference
    assert ratio.estimate == pytest.approx(0.8) and "0.8" in str(ratio)


def test_a_pair_of_cities_without_all_four_pairs_does_not_count():
    pairs = cities()
    gone = (pairs.from_region == "aws:c0") & (pairs.to_region == "aws:c1")
    back = (pairs.from_region == "aws:c1") & (pairs.to_region == "aws:c0")
    assert intercloud_2022.matched_cities(pairs[~gone & ~back]).difference.n == 20


def test_clouds_without_a_city_in_common_are_refused():
    pairs = cities()
    with pytest.raises(ParameterError, match="there are 0 such cities"):
        intercloud_2022.matched_cities(pairs[pairs.from_cloud == pairs.to_cloud])
