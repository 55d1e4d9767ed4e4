"""Cities where both clouds are, and the numbers of one model."""

import numpy as np
import pandas as pd
import pytest

from wanbench import stats
from wanbench.errors import ParameterError
from wanbench.stats.regions import simulated_surveys
from wanbench.stats.tcp import bytes_sent
from wanbench.studies import intercloud_2022


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
    found = intercloud_2022.matched(cities())
    assert len(found.cities) == 7 and len(found.pairs) == 21
    assert found.difference.low < 4.0 < found.difference.high
    assert found.difference.estimate == pytest.approx(4.0, abs=0.3)
    ratio = intercloud_2022.matched(cities(), column="throughput_bps").difference
    assert ratio.estimate == pytest.approx(0.8) and "0.8" in str(ratio)


def test_a_pair_of_cities_without_all_four_pairs_does_not_count():
    pairs = cities()
    gone = (pairs.from_region == "aws:c0") & (pairs.to_region == "aws:c1")
    back = (pairs.from_region == "aws:c1") & (pairs.to_region == "aws:c0")
    assert len(intercloud_2022.matched(pairs[~gone & ~back]).pairs) == 20


def test_clouds_without_a_city_in_common_are_refused():
    pairs = cities()
    with pytest.raises(ParameterError, match="there are 0 such cities"):
        intercloud_2022.matched(pairs[pairs.from_cloud == pairs.to_cloud])


def test_the_figure_has_one_point_per_pair_of_cities():
    figure = intercloud_2022.matched(cities(), column="throughput_bps").figure()
    assert len(figure.data[0].x) == 21 and "bit/s" in figure.layout.xaxis.title.text


def finite_survey(seed=5, window_bytes=2e6, capacity_bps=8e8):
    pairs = simulated_surveys.survey(14, seed=seed, clouds=("aws", "gcp"), intercept_ms=8.0, pair_ms=0.5)
    window = np.minimum(window_bytes, capacity_bps * pairs.rtt_ms / 8000)
    sent = bytes_sent(10, pairs.rtt_ms.to_numpy(), window_bytes=window.to_numpy())
    noise = np.random.default_rng(seed).normal(0, 0.01, len(pairs))
    return pairs.assign(throughput_bps=np.minimum(8 * sent / 10, capacity_bps) * np.exp(noise))


def test_slow_start_is_told_from_a_small_window():
    pairs = finite_survey()
    finite = stats.fit_model(pairs, "finite transfer", transfer_s=10, ordered=True)
    assert finite.numbers["W"].estimate == pytest.approx(2e6, rel=0.01)
    assert finite.numbers["C"].estimate == pytest.approx(8e8, rel=0.03)
    assert finite.numbers["W"].low < 2e6 < finite.numbers["W"].high
    plain = stats.fit_model(pairs, "window-limited", ordered=True)
    assert plain.numbers["W"].estimate < 0.97 * finite.numbers["W"].estimate
    assert "finite transfer" in finite.figure().layout.title.text


def test_a_model_without_a_number_of_its_own_is_refused():
    with pytest.raises(ParameterError, match="allowed here are window-limited"):
        stats.fit_model(finite_survey(), "log-distance")
    with pytest.raises(ParameterError, match="model='finite transfer'"):
        stats.fit_model(finite_survey(), "finite transfer")
