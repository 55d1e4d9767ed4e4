import json
import math

import numpy as np
import pandas as pd
import pytest
from simulations import simulated_surveys

from wanbench import tables
from wanbench.errors import ParameterError
from wanbench.methods.distance import straight_lines
from wanbench.methods.regions.pairs import unordered


def test_the_simulated_survey_is_a_valid_table():
    tables.validate("pairs", simulated_surveys.survey(6, seed=0))


def test_known_slope_intercept_and_speed_are_recovered():
    fit = straight_lines.fit_rtt(simulated_surveys.survey(40, seed=1, region_ms=5, slope_ms_per_1000_km=14.0))
    assert fit.slope.low < 14.0 < fit.slope.high
    assert fit.intercept.low < 40.0 < fit.intercept.high
    assert fit.slope.n == 780 and fit.slope.n_regions == 40
    speed = 2 / (14.0 / 1000) / (299.792458 / 1.468)
    assert fit.speed_in_fibre.low < speed < fit.speed_in_fibre.high
    assert fit.speed_in_vacuum.estimate == pytest.approx(fit.speed_in_fibre.estimate / 1.468)
    naive = fit.slope.naive.high - fit.slope.naive.low
    assert fit.slope.high - fit.slope.low > 1.3 * naive


def test_a_line_without_noise_is_found_exactly():
    pairs = simulated_surveys.survey(8, seed=2, pair_ms=0.0)
    fit = straight_lines.fit_rtt(pairs)
    assert fit.slope.estimate == pytest.approx(14.0)
    assert fit.pearson.estimate == pytest.approx(1.0)
    assert fit.slope.high - fit.slope.low < 1e-6
    assert "nan" not in str(fit).lower()


def test_light_in_fibre_itself_has_speed_one():
    pairs = simulated_surveys.survey(8, seed=2).assign(rtt_ms=lambda frame: frame.light_rtt_ms)
    fit = straight_lines.fit_rtt(pairs)
    assert fit.speed_in_fibre.estimate == pytest.approx(1.0)
    assert fit.intercept.estimate == pytest.approx(0.0, abs=1e-6)


def test_half_distance_is_recovered():
    pairs = simulated_surveys.survey(30, seed=3)
    halved = 1e9 * 0.5 ** (pairs.distance_km / 4000)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.3, len(pairs)))
    fit = straight_lines.fit_throughput(pairs.assign(throughput_bps=halved * noise))
    assert fit.half_distance.low < 4000 < fit.half_distance.high
    assert fit.factor.estimate == pytest.approx(10**fit.slope.estimate)
    assert fit.half_distance.estimate == pytest.approx(-1000 * math.log10(2) / fit.slope.estimate)
    assert str(fit).startswith("Throughput halves every ")


def test_throughput_through_both_directions_is_the_line_through_ordered_pairs():
    pairs = simulated_surveys.survey(10, seed=4, pair_log_sd=0.4)
    ordered = np.polyfit(pairs.distance_km / 1000, np.log10(pairs.throughput_bps), 1)[0]
    assert straight_lines.fit_throughput(pairs).slope.estimate == pytest.approx(ordered)


def test_half_distance_is_open_where_the_slope_may_be_zero():
    pairs = simulated_surveys.survey(10, seed=5)
    noise = np.exp(np.random.default_rng(1).normal(0, 1.0, len(pairs)))
    up = None
    for factor in (1 - 1e-5, 1 + 1e-3):
        fit = straight_lines.fit_throughput(pairs.assign(throughput_bps=1e8 * factor**pairs.distance_km * noise))
        up = fit.half_distance
        if fit.slope.estimate < 0:
            assert up.high == math.inf and "at least" in str(up)
            assert json.loads(json.dumps(up.finding("half").high)) is None
    assert math.isnan(up.estimate) and "does not fall with distance" in str(up)
    assert up.finding("half").estimate is None


def test_rtt_that_falls_with_distance_has_no_speed():
    pairs = simulated_surveys.survey(10, seed=6).assign(rtt_ms=lambda frame: 400 - frame.distance_km / 100)
    speed = straight_lines.fit_rtt(pairs).speed_in_fibre
    assert math.isnan(speed.estimate) and "no effective speed" in str(speed)


def test_rows_left_out_are_counted_and_stated():
    pairs = simulated_surveys.survey(12, seed=7)
    pairs.loc[:2, "rtt_ms"] = np.nan
    pairs.loc[3, "rtt_ms"] = 0.0
    pairs.loc[4, "distance_km"] = np.nan
    fit = straight_lines.fit_rtt(pairs)
    assert fit.sample.left_out.reason.value_counts().to_dict() == {
        "without rtt_ms": 3,
        "where rtt_ms is not positive": 1,
        "without distance_km": 1,
    }
    assert fit.slope.n == 66
    assert "5 rows of the table of pairs left out" in str(fit.slope)


def test_directions_and_repeats_collapse_to_the_median_of_medians():
    pairs = simulated_surveys.survey(4, seed=8)
    a, b = "aws:region-000", "azure:region-001"
    there = (pairs.from_region == a) & (pairs.to_region == b)
    back = (pairs.from_region == b) & (pairs.to_region == a)
    pairs.loc[there, "rtt_ms"], pairs.loc[back, "rtt_ms"] = 10.0, 30.0
    repeated = pd.concat([pairs, pairs[there], pairs[there]], ignore_index=True)
    frame = unordered(repeated, "rtt_ms").frame
    assert len(frame) == 6
    assert frame.loc[(frame.region_a == a) & (frame.region_b == b), "value"].item() == 20.0
    assert (frame.n_directions == 2).all()


def test_a_distance_that_depends_on_direction_fails():
    pairs = simulated_surveys.survey(5, seed=9)
    pairs.loc[0, "distance_km"] += 500
    with pytest.raises(ParameterError, match="distance_km differs by 500 km"):
        straight_lines.fit_rtt(pairs)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda pairs: pairs.assign(distance_km=1000.0), "every pair has the same distance"),
        (lambda pairs: pairs.assign(rtt_ms=np.nan), "there are 0 .*without rtt_ms"),
        (lambda pairs: pairs.head(0), "at least 3 regions"),
        (lambda pairs: pairs.drop(columns="rtt_ms"), "lacks column rtt_ms"),
        (lambda pairs: pairs[pairs.to_cloud.eq("aws") & pairs.from_cloud.eq("aws")], "there are 2"),
    ],
)
def test_what_cannot_be_fitted_says_why(spoil, message):
    with pytest.raises(ParameterError, match=message):
        straight_lines.fit_rtt(spoil(simulated_surveys.survey(6, seed=10)))


def test_few_regions_give_an_estimate_without_interval_and_say_so():
    fit = straight_lines.fit_rtt(simulated_surveys.survey(4, seed=11))
    assert math.isfinite(fit.slope.estimate) and math.isnan(fit.slope.low)
    assert "no interval from 4 regions" in str(fit.slope)
    fall = straight_lines.fit_throughput(simulated_surveys.survey(4, seed=11))
    for derived in (fit.speed_in_fibre, fit.speed_in_vacuum, fall.factor, fall.half_distance):
        assert math.isfinite(derived.estimate) and "(no interval; " in str(derived)
    assert straight_lines.fit_rtt(simulated_surveys.survey(4, seed=11)).band([1000.0]).low.isna().all()


def test_a_star_of_pairs_has_no_interval_and_names_its_centre():
    pairs = simulated_surveys.survey(8, seed=12)
    star = pairs[(pairs.from_region == "aws:region-000") | (pairs.to_region == "aws:region-000")]
    slope = straight_lines.fit_rtt(star).slope
    assert math.isnan(slope.low)
    assert "the pairs without aws:region-000 do not determine a line" in str(slope)


@pytest.mark.parametrize("level", [0, 1, 95, "0.95", True, math.nan])
def test_levels_outside_0_and_1_fail(level):
    with pytest.raises(ParameterError, match="level"):
        straight_lines.fit_rtt(simulated_surveys.survey(6, seed=13), level=level)


def test_a_higher_level_is_wider_and_said():
    pairs = simulated_surveys.survey(8, seed=14)
    narrow, wide = straight_lines.fit_rtt(pairs).slope, straight_lines.fit_rtt(pairs, level=0.99).slope
    assert wide.high - wide.low > narrow.high - narrow.low
    assert "99 % interval" in str(wide)


def test_an_estimate_shows_itself_and_becomes_a_finding():
    fit = straight_lines.fit_rtt(simulated_surveys.survey(12, seed=15, region_ms=5))
    text = fit.slope._repr_html_()
    for part in ("Method", "Imbens", "Assumption", "Naive interval", "region bootstrap"):
        assert part in text
    finding = fit.slope.finding("rtt-slope", page="02-intercloud-throughput")
    assert str(finding) == str(fit.slope) and finding.cautions == fit.slope.warnings
    assert finding.n == 66 and finding.n_regions == 12
    assert set(fit.table().quantity) >= {"RTT per distance", "Pearson r"}
    assert "RTT per distance" in fit._repr_html_()


def test_the_same_pairs_in_another_order_give_the_same_numbers():
    pairs = simulated_surveys.survey(10, seed=16, region_ms=5)
    shuffled = pairs.sample(frac=1, random_state=1)
    assert str(straight_lines.fit_rtt(pairs)) == str(straight_lines.fit_rtt(shuffled))
    assert str(straight_lines.fit_throughput(pairs)) == str(straight_lines.fit_throughput(shuffled))


def test_a_perfect_rank_correlation_has_no_interval_rather_than_a_silly_one():
    pairs = simulated_surveys.survey(6, seed=1, pair_ms=0.0)
    rho = straight_lines.fit_rtt(pairs, resamples=50).spearman
    assert rho.estimate == pytest.approx(1.0)
    assert np.isnan(rho.low) and np.isnan(rho.high)
    assert "no interval" in str(rho)


@pytest.mark.parametrize("effects", [{}, {"places": "continents", "missing": 0.3, "law": "t5"}])
def test_a_simulated_sample_is_what_its_survey_collapses_to(effects):
    drawn = simulated_surveys.sample(9, seed=3, **effects).frame
    pairs = simulated_surveys.survey(9, seed=3, **effects)
    rtt, throughput = unordered(pairs, "rtt_ms"), unordered(pairs, "throughput_bps", combine="geometric mean")
    both = ["region_a", "region_b", "cloud_pair", "distance_km", "n_directions", "value"]
    pd.testing.assert_frame_equal(drawn[both], rtt.frame[both])
    np.testing.assert_allclose(drawn.throughput_bps, throughput.frame.value)


def test_surveys_of_continents_are_samples_of_their_population():
    model = {"intercept_ms": 400.0, "region_ms": 12.0, "pair_ms": 15.0}
    whole = simulated_surveys.population(200_000, **model)
    assert whole["rtt_slope"] == pytest.approx(14.0, abs=0.05)
    r = [
        straight_lines.rtt_line(simulated_surveys.sample(60, seed=k, places="continents", **model), resamples=40)
        for k in range(8)
    ]
    assert np.mean([fit.pearson.estimate for fit in r]) == pytest.approx(whole["rtt_r"], abs=0.02)


@pytest.mark.parametrize(("wrong", "message"), [({"law": "cauchy"}, "law is 'cauchy'"), ({"places": "moon"}, "places")])
def test_surveys_of_another_kind_fail(wrong, message):
    with pytest.raises(ParameterError, match=message):
        simulated_surveys.survey(5, seed=0, **wrong)
