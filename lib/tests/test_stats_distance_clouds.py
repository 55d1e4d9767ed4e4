"""Differences between cloud pairs at equal distance: known answers, peers, and the sentences that go with them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.regions import places, regression
from wanbench.methods.regions.pairs import directed, unordered
from wanbench.pages.intercloud_2022 import clouds


def survey(n=18, *, seed=0, crossing_ms=0.0, slower=1.0, from_aws=1.0, **settings):
    """A survey in which crossing costs ms, and divides throughput; AWS sends faster to Google Cloud than back."""
    pairs = simulated_surveys.survey(n, seed=seed, intercept_ms=60, **settings)
    crosses = pairs.from_cloud != pairs.to_cloud
    sends = (pairs.from_cloud == "aws") & (pairs.to_cloud == "gcp")
    halved = 1e9 * 0.5 ** (pairs.distance_km / 5000)
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(pairs)))
    rate = halved * noise * np.where(crosses, 1 / slower, 1.0) * np.where(sends, from_aws, 1.0)
    return pairs.assign(rtt_ms=pairs.rtt_ms + crossing_ms * crosses, throughput_bps=rate)


def test_least_squares_agrees_with_statsmodels_and_with_fits_without_each_region():
    pairs = survey(9, seed=1, region_ms=4)
    sample = unordered(pairs, "rtt_ms")
    x = sample.frame.distance_km.to_numpy() / 1000
    crosses = (
        sample.frame.cloud_pair.str.split("-").str[0] != sample.frame.cloud_pair.str.split("-").str[1]
    ).to_numpy()
    design = np.column_stack([np.ones(len(x)), crosses.astype(float), x])
    y, both = sample.frame.value.to_numpy(), np.arange(len(x))
    fit = regression.least_squares(design, y, sample.first, sample.second, both, 9)
    peer = smf.ols("y ~ c + x", pd.DataFrame({"y": y, "c": crosses.astype(float), "x": x})).fit()
    np.testing.assert_allclose(fit.values, peer.params)
    np.testing.assert_allclose(fit.covariance, peer.cov_params(), rtol=1e-6)
    kept = (sample.first != 4) & (sample.second != 4)
    plain = np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
    np.testing.assert_allclose(fit.without_region[4], plain)
    plain = np.linalg.lstsq(np.delete(design, 7, axis=0), np.delete(y, 7), rcond=None)[0]
    np.testing.assert_allclose(fit.without_pair[7], plain)


def test_two_directions_of_a_pair_leave_together():
    sample = directed(survey(6, seed=2), "throughput_bps")
    assert len(sample.frame) == 30 and sample.n_pairs == 15
    assert (np.bincount(sample.both) == 2).all()
    y = np.log(sample.frame.value.to_numpy())
    design = np.column_stack([np.ones(30), sample.frame.distance_km.to_numpy()])
    fit = regression.least_squares(design, y, sample.first, sample.second, sample.both, 6)
    kept = sample.both != 3
    np.testing.assert_allclose(fit.without_pair[3], np.linalg.lstsq(design[kept], y[kept], rcond=None)[0])


def test_what_cannot_be_told_without_a_region_has_no_interval():
    pairs = survey(8, seed=3)
    rare = pairs.from_region.isin(["gcp:region-005"]) & pairs.to_region.isin(["gcp:region-002"])
    lone = pairs[~((pairs.from_cloud == "gcp") & (pairs.to_cloud == "gcp")) | rare]
    found = clouds.compare_clouds(lone, permutations=49)
    within = [
        each for each in found.contrasts if each.other == "within Google Cloud" or each.one == "within Google Cloud"
    ]
    assert within and all(np.isnan(each.estimate.low) for each in within)
    assert "not determined without one of the places" in str(within[0].estimate)
    assert np.isfinite(found.difference.estimate.low)


@pytest.mark.parametrize("own", [False, True])
def test_a_known_difference_of_rtt_is_recovered(own):
    found = clouds.compare_clouds(survey(seed=4, crossing_ms=8, region_ms=2), permutations=199)
    contrast = found.difference_at_mean if own else found.difference
    assert contrast.estimate.low < 8 < contrast.estimate.high
    assert contrast.estimate.low > 0 and contrast.p.estimate == 1 / 200
    assert contrast.estimate.unit == "ms" and "slower than within one cloud (" in str(contrast)
    assert found.slope_difference.low < 0 < found.slope_difference.high
    assert "which may be chance" in str(found.slope_difference)
    assert "disagree about the slopes" not in found.sentence
    apart = replace(found.slope_difference, low=0.1)
    assert "disagree about the slopes" in replace(found, slope_difference=apart).sentence


def test_common_and_own_slopes_are_those_of_statsmodels():
    pairs = survey(12, seed=5, crossing_ms=3)
    found = clouds.compare_clouds(pairs, permutations=9)
    frame = unordered(pairs, "rtt_ms").frame
    frame = frame.assign(
        c=[float(len(set(name.split("-"))) > 1) for name in frame.cloud_pair],
        d=(frame.distance_km - frame.distance_km.mean()) / 1000,
    )
    for cloud in ("azure", "gcp"):
        frame[cloud] = [name.split("-").count(cloud) for name in frame.cloud_pair]
    plain, own = (smf.ols(f"value ~ c {sign} d + azure + gcp", frame).fit() for sign in "+*")
    assert found.difference.estimate.estimate == pytest.approx(plain.params["c"])
    assert found.difference.estimate.naive.low == pytest.approx(plain.conf_int().loc["c", 0])
    assert found.difference_at_mean.estimate.estimate == pytest.approx(own.params["c"])
    assert found.slope_difference.estimate == pytest.approx(own.params["c:d"])


def test_a_known_ratio_of_throughput_is_recovered_and_said_with_its_direction():
    found = clouds.compare_clouds(survey(seed=6, slower=1.5), column="throughput_bps", permutations=199)
    assert found.difference.estimate.low < 1 / 1.5 < found.difference.estimate.high
    ratio = found.difference.reported
    assert ratio.estimate == pytest.approx(1 / found.difference.estimate.estimate)
    assert ratio.low == pytest.approx(1 / found.difference.estimate.high)
    assert f"are slower: those within one cloud reach {ratio.formatted} their throughput (" in str(ratio)
    for contrast in found.crossing:
        assert contrast.estimate.low < 1 / 1.5 < contrast.estimate.high


def test_direction_is_compared_over_ordered_pairs():
    pairs = survey(seed=7, from_aws=2.0)
    found = clouds.compare_clouds(pairs, column="throughput_bps", permutations=199)
    by_name = {(each.one, each.other): each for each in found.directions}
    sends = by_name["from AWS to Google Cloud", "from Google Cloud to AWS"]
    assert sends.estimate.low < 2 < sends.estimate.high and sends.p.estimate == 1 / 200
    assert f"are faster, {sends.estimate.formatted} the throughput of those" in str(sends)
    forth = pairs[(pairs.from_cloud == "aws") & (pairs.to_cloud == "gcp")].set_index(["from_region", "to_region"])
    back = pairs[(pairs.from_cloud == "gcp") & (pairs.to_cloud == "aws")].set_index(["to_region", "from_region"])
    ways = np.log(forth.throughput_bps) - np.log(back.throughput_bps.rename_axis(forth.index.names))
    plain = np.exp(ways.mean())
    assert sends.estimate.estimate == pytest.approx(plain)
    others = by_name["from AWS to Azure", "from Azure to AWS"]
    assert others.estimate.low < 1 < others.estimate.high and "no difference is shown" in str(others)
    assert clouds.compare_clouds(pairs, permutations=9).directions == ()


def test_crossing_removes_what_regions_of_a_cloud_have_in_common():
    pairs = survey(seed=8)
    slow = 25.0 * ((pairs.from_cloud == "gcp").astype(int) + (pairs.to_cloud == "gcp"))
    found = clouds.compare_clouds(pairs.assign(rtt_ms=pairs.rtt_ms + slow), permutations=49)
    assert len(found.crossing) == 3 and len(found.contrasts) == 15
    for contrast in found.crossing:
        assert abs(contrast.estimate.estimate) < 2
    within = next(each for each in found.contrasts if (each.one, each.other) == ("within AWS", "within Google Cloud"))
    assert within.estimate.low < -50 < within.estimate.high
    whole = found.difference.estimate
    assert abs(whole.estimate) < 2 and whole.high - whole.low < 4  # that Google Cloud is slow does not widen it
    assert "within AWS are 50" in str(within) and "faster than within Google Cloud" in str(within)


def test_the_interval_by_region_covers_where_the_naive_one_fails():
    hits, naive = 0, 0
    for seed in range(25):
        pairs = simulated_surveys.survey(15, seed=seed, intercept_ms=100, region_ms=5, pair_ms=3)
        sample = unordered(pairs, "rtt_ms")
        groups, grouped = sorted(sample.frame.cloud_pair.unique()), places.units(sample)
        names = sample.regions
        members = {name: clouds.membership(names, name) for name in groups}
        far = np.zeros((15, 15))
        cells = sample.first, sample.second
        far[cells] = sample.frame.distance_km / 1000
        fit = clouds.fit_groups(
            members, far, far, cells, sample.frame.value.to_numpy(), names, grouped, grouped.both
        ).fit
        part = fit.combination([1, 0, 0, 0, 0, -1, 0], 0.95)
        hits += part.interval.low <= 0 <= part.interval.high
        naive += part.naive.low <= 0 <= part.naive.high
    assert hits >= 22 and naive <= 20


def test_words_for_groups():
    assert clouds.group_label("ibm-ibm") == "within IBM Cloud"
    assert clouds.group_label("local-other") == "between local and other"


def test_one_cloud_alone_is_refused():
    with pytest.raises(ParameterError, match="no pair between clouds has rtt_ms"):
        clouds.compare_clouds(simulated_surveys.survey(8, seed=1, clouds=("aws",)))
    with pytest.raises(ParameterError, match="at least 4 regions"):
        clouds.compare_clouds(simulated_surveys.survey(3, seed=1))


def test_figures_and_tables_say_what_was_found():
    pairs = survey(12, seed=9, crossing_ms=5)
    found = clouds.compare_clouds(pairs.assign(rtt_ms=pairs.rtt_ms.mask(pairs.index == 0)), permutations=49)
    assert len(found.estimates) == 2 * len(found.all_contrasts) + 2
    assert len(found.table()) == len(found.formatted_table()) == len(found.all_contrasts)
    assert {"one", "other", "p", "p_low"} <= set(found.table())
    assert "<script" not in found._repr_html_() and found._repr_html_().count("<tr>") - 1 == len(found.all_contrasts)
    figure = found.figure()
    assert figure.layout.meta["name"] == "rtt-by-clouds-at-equal-distance"
    assert len(figure.layout.yaxis.tickvals) == len(found.all_contrasts)
    speeds = clouds.compare_clouds(pairs, column="throughput_bps", permutations=9)
    assert speeds.figure().layout.xaxis.type == "log"


def test_many_contrasts_have_labels_of_one_line():
    found = clouds.compare_clouds(simulated_surveys.survey(12, seed=1), permutations=20)
    labels = found.figure().layout.yaxis.ticktext
    assert len(labels) > 8 and not any("<br>" in each for each in labels)
    assert "within AWS less AWS – Google Cloud" in labels
    few = clouds.compare_clouds(simulated_surveys.survey(12, seed=1, clouds=("aws", "gcp")), permutations=20)
    assert all("<br>" in each for each in few.figure().layout.yaxis.ticktext)
