"""What the study of a survey asks of its pairs: repeats, scatter, nearest regions, charts per pair of clouds."""

import numpy as np
import pandas as pd
import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.pages.intercloud_2022 import variation
from wanbench.pages.intercloud_2022.charts import charts
from wanbench.pages.intercloud_2022.nearest_region import nearest_region
from wanbench.pages.intercloud_2022.readings import (
    NO_EUROPE_ASIA,
    UNFLAGGED,
    correlations,
    row_selections,
    unit_readings,
)
from wanbench.pages.intercloud_2022.variation import repeats, scatter


def twice(between_sd, within_sd, seed=0, n_regions=12):
    """Each ordered pair tested twice, with known standard deviations of the logarithm."""
    rng = np.random.default_rng(seed)
    pairs = simulated_surveys.survey(n_regions, seed=seed)[["from_region", "to_region"]]
    level = rng.normal(0, between_sd, len(pairs))
    return pd.concat([pairs.assign(value=np.exp(level + rng.normal(0, within_sd, len(pairs)))) for _ in range(2)])


def test_repeats_differ_by_the_median_factor_of_their_pairs():
    tests = twice(1.0, 0.5)
    found = repeats(tests, "value", resamples=500)
    log = np.log(tests.value.to_numpy().reshape(2, -1))
    assert found.factor.low < found.factor.estimate < found.factor.high
    assert found.factor.estimate == pytest.approx(np.median(np.exp(np.abs(log[0] - log[1]))))
    assert found.factor.n_regions == 12


def test_pairs_tested_once_are_left_out_of_the_repeats_and_counted():
    tests = twice(1.0, 0.1)
    once = pd.DataFrame({"from_region": ["aws:a"], "to_region": ["gcp:b"], "value": [1e9]})
    found = repeats(pd.concat([tests, once]), "value", resamples=200)
    assert found.factor.estimate == repeats(tests, "value", resamples=200).factor.estimate


def test_repeats_without_a_repeated_pair_are_refused():
    with pytest.raises(ParameterError, match="no ordered pair has two tests with value"):
        repeats(twice(1, 1).drop_duplicates(["from_region", "to_region"]), "value")
    with pytest.raises(ParameterError, match="table tests lacks column rtt_ms"):
        repeats(twice(1, 1), "rtt_ms")


def test_scatter_finds_which_of_two_is_spikier():
    pairs = simulated_surveys.survey(20, seed=3, pair_ms=1.0, pair_log_sd=0.6, capacity_bps=1e12)
    found = scatter(pairs, resamples=300)
    assert 1 < found.rtt.estimate < 1.05 < found.throughput.estimate
    assert found.ratio.low > 1


def survey_with_speeds(speeds):
    """One source in aws, targets in gcp at growing distance with given throughputs."""
    rows = [
        {
            "from_region": "aws:s",
            "to_region": f"gcp:{k}",
            "from_cloud": "aws",
            "to_cloud": "gcp",
            "distance_km": 100.0 * (k + 1),
            "throughput_bps": speed,
        }
        for k, speed in enumerate(speeds)
    ]
    return pd.DataFrame(rows)


def test_the_nearest_region_is_compared_with_the_best():
    assert nearest_region(survey_with_speeds([9e8, 5e8, 1e8])).relative.estimate == 1
    found = nearest_region(survey_with_speeds([2e8, 8e8, 1e8]))
    assert found.relative.estimate == 0.25 and found.share.estimate == 0
    assert found.share.warnings
    with pytest.raises(ParameterError, match="no region has throughput to 3"):
        nearest_region(survey_with_speeds([1e8, 1e8]))


def test_there_is_a_chart_for_all_pairs_and_one_per_ordered_pair_of_clouds():
    pairs = simulated_surveys.survey(12, seed=1, clouds=("aws", "gcp"))
    found = charts(pairs, resamples=100, transfer_s=10)
    assert list(found.charts) == ["all", "aws->aws", "aws->gcp", "gcp->aws", "gcp->gcp"]
    assert found["aws->gcp"].rtt.slope.n == 36 and found["all"].rtt.slope.n == 66
    one_way = pairs[(pairs.from_cloud == "aws") & (pairs.to_cloud == "gcp")]
    expected = np.corrcoef(one_way.distance_km, np.log10(one_way.throughput_bps))[0, 1]
    assert found["aws->gcp"].throughput.pearson.estimate == pytest.approx(expected)
    figure = found["gcp->aws"].figure()
    assert figure.layout.meta["name"] == "distance-chart-gcp-aws"
    assert list(found.formatted_table())[1:] == list(found.charts)
    window = found["aws->gcp"].model.parameters["W"]
    assert found["all"].model is None and window.estimate == pytest.approx(3e6, rel=0.1)
    with pytest.raises(ParameterError, match="there are all, aws->aws"):
        found["azure->aws"]


def test_a_pair_of_clouds_with_too_few_regions_is_left_out_with_its_reason():
    pairs = simulated_surveys.survey(6, seed=1, clouds=("aws", "aws", "aws", "gcp", "gcp"))
    found = charts(pairs, resamples=100, transfer_s=10)
    assert "gcp->gcp" in found.left_out and "gcp->gcp" not in found.charts
    assert found.cautions[-1].startswith("no chart of Google Cloud to Google Cloud: ")
    assert len({caution.partition(" (")[0] for caution in found.cautions}) == len(found.cautions)


def one_row_per_test(seed=2):
    pairs = simulated_surveys.survey(24, seed=seed, clouds=("aws", "gcp"))
    return pairs.assign(run_id="first", distance_catalogue_km=pairs.distance_km)


def test_correlations_find_the_selection_that_gives_a_published_correlation():
    tests = one_row_per_test()
    within = tests[tests.from_cloud == tests.to_cloud]
    claimed = round(np.corrcoef(within.distance_km, within.rtt_ms)[0, 1], 4)
    worse = tests.assign(rtt_ms=tests.rtt_ms + np.random.default_rng(0).normal(60, 20, len(tests)))
    found = correlations({"plain": worse, "within a cloud": within}, claimed)
    assert found.closest.selection == "within a cloud"
    assert found.rows.reproduces.tolist() == [False, True]
    assert "Selections whose r rounds to the claimed value: “within a cloud”." in str(
        found
    ) and "reproduced by" not in str(found)
    assert found.rows.n_rows.tolist() == [len(tests), len(within)]
    with pytest.raises(ParameterError, match="column is 'loss'; allowed: 'rtt_ms', 'throughput_bps'"):
        correlations({"plain": tests}, 0.9, column="loss")


def test_selections_leave_out_what_their_labels_say():
    tests = one_row_per_test()
    places = pd.DataFrame(
        {"name": sorted(set(tests.from_region)), "latitude_deg": 50.0, "longitude_deg": [10.0, 100.0] * 12}
    )
    flagged = (places.name[0],)
    found = row_selections(tests, places, flagged)
    assert not found[UNFLAGGED].isin([flagged[0]]).any().any()
    europe = set(places.name[places.longitude_deg == 10.0])
    rest = found[NO_EUROPE_ASIA]
    assert (rest.from_region.isin(europe) == rest.to_region.isin(europe)).all() and len(rest) < len(tests)
    assert [len(rows) for name, rows in found.items() if name.startswith("only run first (")] == [552]


def test_a_column_that_would_exceed_the_instance_is_not_what_it_says():
    values = pd.Series([131072.0 * k for k in (101, 3000, 9000)], name="bitrate_Bps")
    senders = pd.Series(["gcp", "gcp", "gcp"])
    found = unit_readings(values, senders, {"gcp": 1e9}, {"bytes/s": 8, "bit/s": 1, "bytes in 10 s": 0.8})
    assert found.possible == ["bytes in 10 s"] and found.step == 131072
    assert found.rows.n_above.tolist() == [2, 1, 0]
    assert "Every value is a multiple of 131,072" in str(found)
    with pytest.raises(ParameterError, match="limits_bps lacks gcp; it has none"):
        unit_readings(values, senders, {}, {"bit/s": 1})


def test_unordered_pairs_and_what_is_left_out_are_counted():
    pairs = simulated_surveys.survey(12, seed=1, clouds=("aws", "gcp"))
    found = nearest_region(pairs)
    assert found.share.n == 36 and "share of 12 sources" in found.share.method and not found.share.warnings
    lost = pairs.assign(throughput_bps=pairs.throughput_bps.where(pairs.from_region != pairs.from_region[0]))
    some = nearest_region(lost)
    assert "6 pairs between clouds without throughput or distance left out" in str(some.share)
    gone = (lost.from_region == lost.from_region[0]) & (lost.to_region != lost.to_region.iloc[-1])
    few = nearest_region(pairs[~gone])
    assert "1 source with too few targets in a cloud left out" in str(few.share) and few.share.n == 36
    with pytest.raises(ParameterError, match="lacks column throughput_bps"):
        nearest_region(pairs.drop(columns="throughput_bps"))
    tests = twice(1.0, 0.5)
    again = repeats(pd.concat([tests, tests.head(1).assign(value=np.nan)]), "value", resamples=50)
    assert again.factor.n == 66 and "the 132 ordered pairs" in again.factor.method
    assert "1 test without value left out" in str(again)


def test_scatter_says_what_it_leaves_out(monkeypatch):
    pairs = simulated_surveys.survey(12, seed=1)
    pairs["throughput_bps"] = pairs.throughput_bps.where(pairs.from_region != pairs.from_region[0])
    min_km = float(pairs.distance_km.quantile(0.2))
    monkeypatch.setattr(variation, "MIN_DISTANCE_KM", min_km)
    warnings = scatter(pairs, resamples=50).ratio.warnings
    n_near = int((pairs.distance_km < min_km).sum() / 2)
    assert f"{n_near} pairs nearer than {min_km:g} km left out" in warnings
    assert any("11 without throughput_bps" in each for each in warnings)


@pytest.mark.filterwarnings("error:invalid value")
def test_selections_that_do_not_vary_are_refused():
    pairs = simulated_surveys.survey(4, seed=1).assign(rtt_ms=5.0)
    with pytest.raises(ParameterError, match="does not vary"):
        correlations({"plain": pairs}, 0.9)
