"""Bytes across regions that consumers cause: against simulated tables with a known answer."""

import numpy as np
import pytest
from geo_trials import READING, reading
from scipy.stats import t

from wanbench.errors import MissingDataError
from wanbench.methods.result.means import ratio_of_differences
from wanbench.pages import geo_kafka
from wanbench.pages.geo_kafka import curves


def client_rack(made_rates, tables):
    return geo_kafka.client_rack(curves(made_rates).trials("consumers"), made_rates, tables)


@pytest.mark.parametrize("far", [0.0, 0.5])
def test_what_producers_and_replicas_cause_is_taken_off(far):
    found = client_rack(*reading(far=far))
    assert found.ratio.estimate == pytest.approx(far, abs=0.02) and found.ratio.low < far < found.ratio.high
    assert found.ratio.n == 12 and "client.rack" in str(found)
    assert len(found.formatted_table()) == 3


def test_fiellers_ends_are_where_the_contrast_reaches_its_t_quantile():
    a, b, base = [3.0, 3.4, 2.9], [5.0, 5.3], [1.0, 1.1, 0.7, 1.4]
    value, *ends = ratio_of_differences(a, b, base, 0.9)
    sides = [np.array(side) for side in (a, b, base)]
    variances = np.array([side.var(ddof=1) / len(side) for side in sides])
    assert ends[0] < value < ends[1]
    parts = variances * np.array([1.0, value**2, (1 - value) ** 2])
    freedom = parts.sum() ** 2 / (parts**2 / [2, 1, 3]).sum()  # Satterthwaite's
    for end in ends:
        weights = np.array([1.0, -end, end - 1.0])  # of a - base less `end` times b - base
        error = np.sqrt(weights**2 @ variances)
        assert abs(weights @ [side.mean() for side in sides]) / error == pytest.approx(t.ppf(0.95, freedom))


def test_the_ratio_is_covered_where_trials_without_consumers_scatter_more():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(500):
        base = rng.normal(2.0, 0.25, 3)
        _, low, high = ratio_of_differences(rng.normal(2.5, 0.02, 6), rng.normal(4.0, 0.02, 6), base, 0.95)
        covered += low <= 0.25 <= high
    assert covered > 455  # some 340 with one scatter for all


def test_consumers_that_cause_nothing_measurable_leave_the_ratio_open():
    found = client_rack(*reading(2, noise=0.3))
    assert "no measurable bytes" in str(found) and not found.ratio.formatted_interval


def test_without_one_of_the_three_ways_there_is_no_answer():
    some = {name: READING[name] for name in ("baseline", "leaders")}
    with pytest.raises(MissingDataError, match="no consumers"):
        client_rack(*reading(ways=some))


def test_without_all_links_there_is_no_answer():
    made_rates, tables = reading()
    pair = tables["link_samples"].link_from == "gcp:a"
    with pytest.raises(MissingDataError, match="counters of all links"):
        client_rack(made_rates, tables | {"link_samples": tables["link_samples"][pair]})
