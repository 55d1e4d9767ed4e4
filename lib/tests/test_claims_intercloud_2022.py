from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from simulations import simulated_surveys
from tested_claims import check_all_tested

from wanbench import methods
from wanbench.measure.labs.rented.costs import prices
from wanbench.pages import intercloud_2022
from wanbench.pages.intercloud_2022.charts import charts
from wanbench.pages.intercloud_2022.claims import INTERNET_USD_PER_GB, REGIONS_USD_PER_GB
from wanbench.pages.intercloud_2022.clouds import compare_clouds
from wanbench.pages.intercloud_2022.compare_models import compare_models
from wanbench.pages.intercloud_2022.matched_cities import matched_cities
from wanbench.pages.intercloud_2022.nearest_region import nearest_region
from wanbench.pages.intercloud_2022.readings import correlations
from wanbench.pages.intercloud_2022.variation import repeats, scatter


@pytest.fixture(scope="module")
def audit():
    """A made survey of known results: the window limits, two tests of a pair agree, paths are 1.1 times light."""
    pairs = simulated_surveys.survey(16, seed=4, clouds=("aws", "gcp"), pair_ms=0.5, pair_log_sd=0.02)
    rtt_ms = pairs.light_rtt_ms * 1.1 + 0.5
    pairs = pairs.assign(rtt_ms=rtt_ms, throughput_bps=np.minimum(9.7e8, 8 * 2e6 / (rtt_ms / 1000)))
    tests = pairs.assign(run_id="r", bytes=10_000_000, distance_catalogue_km=pairs.distance_km)
    twice = pd.concat([tests, tests])
    quick = {"resamples": 100}
    cities = import_module("wanbench.pages.intercloud_2022.matched_cities")
    cities.WITHIN_KM, within_km = 2_000.0, cities.WITHIN_KM  # regions of made surveys are far apart
    ways = {"plain": tests, "the catalogue's": tests}
    made = intercloud_2022.claims.throughput_across_clouds(
        tests=twice,
        charts=charts(pairs, transfer_s=10, **quick),
        latency_r=correlations(ways, 1.0),
        throughput_r=correlations(ways, -0.7, column="throughput_bps"),
        inflation=methods.path_inflation(pairs, **quick),
        latency=matched_cities(pairs),
        throughput=matched_cities(pairs, column="throughput_bps"),
        clouds=compare_clouds(pairs),
        models=compare_models(pairs, transfer_s=10),
        repeats=(repeats(twice, "rtt_ms", **quick), repeats(twice, "throughput_bps", **quick)),
        scatters={"all": scatter(pairs, **quick), "aws->gcp": scatter(pairs, **quick)},
        nearest=nearest_region(pairs, **quick),
    )
    cities.WITHIN_KM = within_km
    return made


def test_every_claim_is_tried_or_says_why_not(audit):
    check_all_tested(audit.table().set_index("claim"), 37)


@pytest.mark.parametrize(
    "claim, verdict",
    [
        ("antipodes", "undecided"),
        ("far-less", "reproduced"),
        ("light-most", "reproduced"),
        ("egress-dearer", "reproduced"),
        ("regions-dearer", "cannot be tested here"),
        ("ceilings-harmless", "reproduced"),
        ("instance-low", "not tested"),
        ("instances-cost", "undecided"),
        ("egress-cost", "not reproduced"),
        ("egress-majority", "reproduced"),
        ("charts", "reproduced"),
        ("n-pairs", "reproduced"),
        ("window-example", "not reproduced"),
        ("n-regions", "not tested"),
        ("instances-alike", "not reproduced"),
        ("volume", "reproduced"),
        ("coordinates", "reproduced"),
        ("noisy", "undecided"),
        ("straightforward", "reproduced"),
        ("buffers", "reproduced"),
        ("nearest", "reproduced"),
    ],
)
def test_verdicts_follow_from_what_was_made(audit, claim, verdict):
    assert audit.table().set_index("claim").own[claim] == verdict


def test_both_readings_of_a_number_are_in_the_working(audit):
    rows = audit.table().set_index("claim")
    assert (
        rows.recomputed["n-pairs"] == 2070 and "46 regions, each tested to all other regions" in rows.working["n-pairs"]
    )
    assert "134 ms around the earth in vacuum" in rows.working["antipodes"] and "196 ms" in rows.working["antipodes"]
    assert "cost 1.66 to 3.21 USD with 10 MB each" in rows.working["egress-cost"]


def test_list_prices_are_those_of_the_plan():
    listed = prices().set_index(["cloud", "item"])[["low_usd", "high_usd"]]
    for item, given in (("egress to internet", INTERNET_USD_PER_GB), ("egress between regions", REGIONS_USD_PER_GB)):
        assert {cloud: tuple(listed.loc[cloud, item]) for cloud in given} == given


def test_the_working_has_the_rule_and_the_numbers(audit):
    working = audit.table().set_index("claim").working
    assert "Holds if" in working["straightforward"] and "1.1" in working["straightforward"]
    assert "W by sending and receiving cloud: aws to aws" in working["buffers"]


@pytest.mark.parametrize("claim", ["latency-r", "throughput-r"])
def test_a_correlation_of_the_published_rows_is_not_judged_by_the_interval_of_another_analysis(audit, claim):
    """The rows are the source's own, so r either rounds to the printed number or does not."""
    row = audit.table().set_index("claim").loc[claim]
    assert np.isnan(row.low) and np.isnan(row.high) and "interval" not in row.working
    assert row.own in ("reproduced", "not reproduced")
