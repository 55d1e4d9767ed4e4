"""Differences between cloud pairs at equal distance: known answers, peers, and the sentences that go with them."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.methods.regions import places
from wanbench.methods.regions.pairs import directed, unordered
from wanbench.pages.intercloud_2022 import clouds, regression


def survey(n=18, *, seed=0, slower=1.0, from_aws=1.0, **settings):
    """A survey in which crossing divides throughput, and AWS sends faster to Google Cloud than back."""
    pairs = simulated_surveys.survey(n, seed=seed, intercept_ms=60, **settings)
    crosses = pairs.from_cloud != pairs.to_cloud
    sends = (pairs.from_cloud == "aws") & (pairs.to_cloud == "gcp")
    halved = 1e9 * 0.5 ** (pairs.distance_km / 5000)
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(pairs)))
    rate = halved * noise * np.where(crosses, 1 / slower, 1.0) * np.where(sends, from_aws, 1.0)
    return pairs.assign(throughput_bps=rate)


def test_least_squares_agrees_with_statsmodels_and_with_fits_without_each_region():
    pairs = survey(9, seed=1, region_ms=4)
    sample = unordered(pairs, "rtt_ms")
    x = sample.frame.distance_km.to_numpy() / 1000
    crosses = (
        sample.frame.cloud_pair.str.split("-").str[0] != sample.frame.cloud_pair.str.split("-").str[1]
    ).to_numpy()
    design = np.column_stack([np.ones(len(x)), crosses.astype(float), x])
    y, both = sample.frame.value.to_numpy(), np.arange(len(x))
    fit = regression.least_squares(design, y, places.units(sample, "region"), both)
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
    fit = regression.least_squares(design, y, places.units(sample, "region"), sample.both)
    kept = sample.both != 3
    np.testing.assert_allclose(fit.without_pair[3], np.linalg.lstsq(design[kept], y[kept], rcond=None)[0])


def test_a_direction_that_cannot_be_told_without_a_region_has_no_interval():
    pairs = survey(8, seed=3)
    from_gcp = (pairs.from_cloud == "gcp") & (pairs.to_cloud == "aws")
    found = clouds.compare_clouds(pairs[~from_gcp | (pairs.from_region == "gcp:region-002")])
    back = next(each for each in found.directions if each.one == "from AWS to Google Cloud")
    assert np.isnan(back.estimate.low) and "not determined without one of the places" in str(back.estimate)
    assert np.isfinite(found.difference.estimate.low)


def test_the_difference_is_that_of_statsmodels():
    pairs = survey(12, seed=5, slower=1.2)
    found = clouds.compare_clouds(pairs).difference.estimate
    frame = unordered(pairs, "throughput_bps", combine="geometric mean").frame
    frame = frame.assign(
        log=np.log10(frame.value),
        c=[float(len(set(name.split("-"))) > 1) for name in frame.cloud_pair],
        d=frame.distance_km / 1000,
    )
    for cloud in ("azure", "gcp"):
        frame[cloud] = [name.split("-").count(cloud) for name in frame.cloud_pair]
    plain = smf.ols("log ~ c + d + azure + gcp", frame).fit()
    assert found.estimate == pytest.approx(10 ** plain.params["c"])
    assert found.naive.low == pytest.approx(10 ** plain.conf_int().loc["c", 0])


def test_a_known_ratio_of_throughput_is_recovered_and_said_with_its_direction():
    found = clouds.compare_clouds(survey(seed=6, slower=1.5))
    assert found.difference.estimate.low < 1 / 1.5 < found.difference.estimate.high
    ratio = found.difference.reported
    assert ratio.estimate == pytest.approx(1 / found.difference.estimate.estimate)
    assert ratio.low == pytest.approx(1 / found.difference.estimate.high)
    assert f"transfers within one cloud reach {ratio.formatted} the throughput of those between clouds (" in str(ratio)


def test_direction_is_compared_over_ordered_pairs():
    pairs = survey(seed=7, from_aws=2.0)
    found = clouds.compare_clouds(pairs)
    by_name = {(each.one, each.other): each for each in found.directions}
    sends = by_name["from AWS to Google Cloud", "from Google Cloud to AWS"]
    assert sends.estimate.low < 2 < sends.estimate.high
    assert f"from AWS to Google Cloud reach {sends.estimate.formatted} the throughput of those" in str(sends)
    forth = pairs[(pairs.from_cloud == "aws") & (pairs.to_cloud == "gcp")].set_index(["from_region", "to_region"])
    back = pairs[(pairs.from_cloud == "gcp") & (pairs.to_cloud == "aws")].set_index(["to_region", "from_region"])
    ways = np.log(forth.throughput_bps) - np.log(back.throughput_bps.rename_axis(forth.index.names))
    plain = np.exp(ways.mean())
    assert sends.estimate.estimate == pytest.approx(plain)
    others = by_name["from AWS to Azure", "from Azure to AWS"]
    assert others.estimate.low < 1 < others.estimate.high and "no difference is shown" in str(others)


def test_a_slow_cloud_does_not_count_as_a_cost_of_crossing():
    pairs = survey(seed=8)
    slow = 0.5 ** ((pairs.from_cloud == "gcp").astype(int) + (pairs.to_cloud == "gcp"))
    found = clouds.compare_clouds(pairs.assign(throughput_bps=pairs.throughput_bps * slow))
    whole = found.difference.estimate
    assert whole.low < 1 < whole.high and whole.high / whole.low < 1.2


def test_one_cloud_alone_is_refused():
    with pytest.raises(ParameterError, match="no pair between clouds has throughput_bps"):
        clouds.compare_clouds(survey(8, seed=1, clouds=("aws",)))
    with pytest.raises(ParameterError, match="at least 4 regions"):
        clouds.compare_clouds(survey(3, seed=1))


def test_the_table_has_a_row_for_every_contrast():
    found = clouds.compare_clouds(survey(12, seed=9, slower=1.2))
    assert len(found.estimates) == len(found.contrasts) == 4 and len(found.formatted_table()) == 4
    assert "<script" not in found._repr_html_()
