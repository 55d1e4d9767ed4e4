"""Places as the unit: shared places, what is left out together, cautions about neighbours and skew."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from simulations import effects, simulated_surveys

from wanbench import methods
from wanbench.errors import ParameterError
from wanbench.methods.distance import straight_lines as distance
from wanbench.methods.regions import coverage, dyadic, line, places
from wanbench.methods.regions.jackknife import Sums, leave_out
from wanbench.methods.regions.pairs import unordered
from wanbench.methods.regions.places import Skew
from wanbench.methods.tcp import window_fit
from wanbench.pages import grids_and_predictions, intercloud_2022
from wanbench.regions import distance_km

IN_TOKYO = ["aws:ap-northeast-1", "gcp:asia-northeast1", "azure:japaneast"]
ELSEWHERE = ["aws:eu-west-1", "gcp:europe-west2", "aws:us-east-1", "aws:sa-east-1", "gcp:us-west1", "gcp:asia-south1"]


def pairs_of(names):
    columns = ["from_region", "to_region", "distance_km"]
    pairs = pd.DataFrame([(a, b, distance_km(a, b)) for a, b in permutations(names, 2)], columns=columns)
    noise = np.random.default_rng(0).normal(0, 2, len(pairs))
    return pairs.assign(rtt_ms=40 + 14 * pairs.distance_km / 1000 + noise, throughput_bps=1e8)


def test_regions_of_one_city_are_one_unit_also_where_their_pair_was_not_measured():
    pairs = pairs_of(IN_TOKYO + ELSEWHERE)
    unmeasured = pairs[~(pairs.from_region.isin(IN_TOKYO) & pairs.to_region.isin(IN_TOKYO))]
    for table in (pairs, unmeasured):
        sample = unordered(table, "rtt_ms")
        grouped = places.units(sample)
        tokyo = {grouped.of_region[sample.regions.index(name)] for name in IN_TOKYO}
        assert len(tokyo) == 1 and grouped.n == 1 + len(ELSEWHERE)
    slope = methods.fit_rtt(pairs, resamples=40).slope
    assert slope.n_places == 7 and "36 pairs of 9 regions in 7 places" in str(slope)
    by_region = methods.fit_rtt(pairs, resamples=40, cluster="region").slope
    assert by_region.estimate == slope.estimate and "in 7 places" not in str(by_region)


@pytest.mark.parametrize(
    ("cluster", "n"), [("region", 9), ("place", 7), (100, 7), (0, 7), (1000, 6), (dict.fromkeys(IN_TOKYO, "Tokyo"), 7)]
)
def test_the_unit_may_be_chosen(cluster, n):
    assert places.units(unordered(pairs_of(IN_TOKYO + ELSEWHERE), "rtt_ms"), cluster).n == n


@pytest.mark.parametrize("cluster", ["city", -1, True, None, float("nan"), {"aws:nowhere": "x"}])
def test_another_unit_is_refused(cluster):
    with pytest.raises(ParameterError, match="cluster"):
        methods.fit_rtt(pairs_of(ELSEWHERE), cluster=cluster)


FITS = {
    "rtt": lambda pairs, **more: methods.fit_rtt(pairs, resamples=40, **more).slope,
    "throughput": lambda pairs, **more: methods.fit_throughput(pairs, resamples=40, **more).half_distance,
    "window": lambda pairs, **more: methods.fit_window(pairs, resamples=40, **more).window,
}


@pytest.mark.parametrize("name", FITS)
def test_every_regional_fit_takes_places_as_units_where_clouds_share_cities(name):
    pairs = simulated_surveys.survey(20, seed=2, places="cities", region_ms=5, region_log_sd=0.2, alike=0.95)
    by_place, by_region = FITS[name](pairs), FITS[name](pairs, cluster="region")
    assert by_place.n_places == 11 and "20 regions in 11 places" in str(by_place)
    assert by_region.n_places in (None, 20) and "places (" not in str(by_region)
    assert by_place.estimate == pytest.approx(by_region.estimate)
    assert (by_place.low, by_place.high) != (by_region.low, by_region.high)


def test_a_pair_within_a_unit_counts_once_where_the_unit_leaves():
    sample = simulated_surveys.sample(14, seed=3, places="cities", region_ms=8, pair_ms=5, intercept_ms=200)
    grouped = places.units(sample)
    assert (grouped.first == grouped.second).any()
    x, y = sample.frame.distance_km.to_numpy() / 1e4, sample.frame.value.to_numpy()
    design = np.column_stack([np.ones_like(x), x])
    left = leave_out(
        Sums.of(design, y, grouped.first, grouped.second, grouped.n),
        line.reml(Sums.of(design, y, grouped.first, grouped.second, grouped.n)),
    )
    for k in range(grouped.n):
        kept = (grouped.first != k) & (grouped.second != k)
        plain = np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
        np.testing.assert_allclose(left.without_region[k], plain)
        total = dyadic.region_sums(design, grouped.first, grouped.second, grouped.n)[k]
        np.testing.assert_allclose(total, design[~kept].sum(axis=0))


def test_the_sandwich_of_units_is_the_sum_over_pairs_of_pairs_that_share_one():
    sample = simulated_surveys.sample(10, seed=4, places="cities", region_ms=8, pair_ms=5)
    grouped = places.units(sample)
    a, b = grouped.first, grouped.second
    design = np.column_stack([np.ones(len(a)), sample.frame.distance_km / 1e4])
    residual = np.random.default_rng(0).normal(size=len(a))
    shared = (a[:, None] == a) | (a[:, None] == b) | (b[:, None] == a) | (b[:, None] == b)
    scores = design * residual[:, None]
    bread = np.linalg.inv(design.T @ design)
    n, size = len(a), grouped.n
    dense = size / (size - 1) * (n - 1) / (n - 2) * bread @ scores.T @ shared @ scores @ bread
    np.testing.assert_allclose(dyadic.sandwich(design, residual, a, b, size), dense)


def test_resampled_pairs_within_a_unit_come_as_often_as_the_unit():
    first, second = np.array([0, 0, 1]), np.array([0, 1, 2])
    weights = np.array([[2.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_allclose(dyadic.pair_weights(weights, first, second), [[2, 2, 0], [1, 0, 0]])
    sums = dyadic.weighted_sums(weights, np.array([[1.0], [10.0], [100.0]]), first, second)
    np.testing.assert_allclose(sums[:, 0], [22, 1])


def lines(kind, n=40, seeds=range(6)):
    model = effects.on_rtt(kind)
    return [distance.rtt_line(effects.survey(seed, n, kind, model), resamples=40, seed=seed) for seed in seeds]


def test_effects_shared_by_city_widen_the_interval_by_place():
    model = effects.on_rtt("effects shared by city")
    widths = []
    for seed in range(6):
        pairs = effects.survey(seed, 40, "effects shared by city", model)
        fits = [distance.rtt_line(pairs, resamples=40, cluster=each).slope for each in ("place", "region")]
        widths.append([fit.high - fit.low for fit in fits])
    by_place, by_region = np.mean(widths, axis=0)
    assert by_place > 1.15 * by_region


def test_neighbours_that_deviate_alike_are_cautioned_of_and_others_are_not():
    alike = [fit for fit in lines("effects shared over 1,500 km", 60) if fit.line.moran.significant]
    assert len(alike) >= 4
    assert sum(fit.line.moran.significant for fit in lines("effects of regions", 60)) <= 1
    fit = alike[0]
    for estimate in (fit.slope, fit.intercept, fit.pearson):
        assert any("effects of nearby places are correlated" in each for each in estimate.warnings)
    assert "cluster=1500" in str(fit.slope)


def test_windows_that_neighbours_share_are_cautioned_of_with_what_the_interval_then_covers():
    def cautioned(kind):
        model = effects.on_throughput(kind) | {"window_bytes": 3e6, "capacity_bps": 300e6}
        fits = [
            window_fit.window_of(effects.survey(seed, 46, kind, model), resamples=40, seed=seed, cluster="place")
            for seed in range(8)
        ]
        return [fit.window for fit in fits if "effects of nearby places are correlated" in str(fit.window)]

    found = cautioned("effects shared over 5,000 km")
    assert len(found) >= 6 and len(cautioned("effects of regions")) <= 2
    low, high = coverage.CORRELATED_COVERAGE["window W"][46]
    assert low < 50 and f"contains the true value in {low:.1f} to {high:.1f} % of simulated" in str(found[0])
    assert f"contains the true value in {low:.1f} to {high:.1f} % of simulated" in found[0].assumption


def test_the_assumption_says_what_a_survey_cannot_show():
    few = distance.rtt_line(
        effects.survey(0, 8, "effects of regions", effects.on_rtt("effects of regions")), resamples=40
    )
    assert few.line.moran is None
    low, high = coverage.CORRELATED_COVERAGE["RTT intercept"][8]
    assert low < 90 and f"{low:.1f} to {high:.1f} %" in few.intercept.assumption


@pytest.mark.parametrize("kind", ["slow regions, 1 in 10", "detouring regions, 1 in 10"])
def test_skewed_effects_are_cautioned_of_with_what_intervals_then_cover(kind):
    fits = lines(kind)
    assert sum(fit.line.skew.significant for fit in fits) >= 5
    assert sum(fit.line.skew.significant for fit in lines("effects of regions")) <= 1
    fit = next(fit for fit in fits if fit.line.skew.significant)
    low, high = coverage.SKEWED_COVERAGE["Pearson r"][16]
    cautions = [each for each in fit.pearson.warnings if "are skewed" in each]
    assert cautions and f"contains the true value in {low:.1f} to {high:.1f} % of simulated" in cautions[0]
    assert f"contains the true value in {low:.1f} to {high:.1f} % of simulated" in fit.pearson.assumption
    assert "the survey itself may not show this" in fit.pearson.assumption


def test_a_skew_that_does_no_harm_is_not_said():
    mild = Skew("height", 0.6, 0.001)
    assert not mild.significant and coverage.caution("Pearson r", 40, mild) == ()


def test_few_pairs_beyond_the_knee_and_a_window_by_receiver_are_cautioned_of():
    def fit(window_bytes, receiver=0.0):
        pairs = simulated_surveys.survey(
            24, seed=1, places="continents", pair_ms=0.1, window_bytes=window_bytes, pair_log_sd=0.2
        )
        names = sorted(set(pairs.to_region))
        factor = dict(zip(names, np.exp(np.random.default_rng(1).normal(0, receiver, 24)), strict=True))
        log = np.minimum(np.log(300e6), np.log(8e3 * window_bytes * pairs.to_region.map(factor) / pairs.rtt_ms))
        noise = np.random.default_rng(2).normal(0, 0.2, len(pairs))
        return methods.fit_window(pairs.assign(throughput_bps=np.exp(log + noise)), resamples=40)

    assert "those beyond the knee" in str(fit(9.5e6).window)
    plain, uneven = fit(3e6), fit(3e6, receiver=0.6)
    assert "beyond the knee" not in str(plain)
    assert "C is 3 to 12 % too small" in str(uneven.capacity)
    assert uneven.capacity.estimate < 0.95 * plain.capacity.estimate


def test_a_result_shows_what_it_says_and_has_other_levels():
    fit = methods.fit_rtt(simulated_surveys.survey(20, seed=1, region_ms=5), resamples=40)
    assert repr(fit) == str(fit) and repr(fit.slope) == str(fit.slope)
    assert len(repr(fit.sample)) < 100
    again = methods.fit_rtt(simulated_surveys.survey(20, seed=1, region_ms=5), resamples=40, level=0.8)
    for one, other in zip(fit.estimates, again.estimates, strict=True):
        assert one.low < other.low < other.high < one.high
    assert fit.slope.standard_error == pytest.approx(again.slope.standard_error)


BAD = {
    "text for a number": ("rtt_ms", "fast", "rtt_ms in row 3 of table pairs .* is 'fast'; allowed: a number"),
    "a negative distance": ("distance_km", -4.0, "distance_km in row 3 .* is -4.0; allowed: a finite number"),
    "an infinite distance": ("distance_km", np.inf, "distance_km in row 3 .* is inf; allowed: a finite number"),
    "a region without a name": ("from_region", None, "from_region in row 3 of table pairs is None; allowed: a name"),
}
DOORS = {
    "fit_rtt": methods.fit_rtt,
    "inflation": methods.path_inflation,
    "physics_check": methods.physics_check,
    "predict": grids_and_predictions.fit_predictor,
    "what_if": lambda pairs: grids_and_predictions.what_if(pairs, "aws:region-000", "gcp:region-002"),
}
AS_THROUGHPUT = {"fit_throughput": methods.fit_throughput, "nearest": intercloud_2022.nearest_region}


@pytest.mark.parametrize("door", DOORS | AS_THROUGHPUT)
@pytest.mark.parametrize("fault", BAD)
def test_a_row_that_cannot_be_used_is_named_at_every_door(door, fault):
    column, value, message = BAD[fault]
    pairs = simulated_surveys.survey(9, seed=1)
    pairs[column] = pairs[column].astype(object)
    pairs.loc[3, column] = value
    if door in AS_THROUGHPUT:
        message = message.replace("rtt_ms", "throughput_bps")
        pairs = pairs.drop(columns="throughput_bps").rename(columns={"rtt_ms": "throughput_bps"})
    with pytest.raises(ParameterError, match=message):
        (DOORS | AS_THROUGHPUT)[door](pairs)


@pytest.mark.parametrize("door", [*DOORS, *AS_THROUGHPUT, "directed"])
@pytest.mark.parametrize("given", [None, "pairs.csv", [1, 2]])
def test_what_is_no_table_is_named_at_every_door(door, given):
    from wanbench.methods.regions.pairs import directed

    call = (DOORS | AS_THROUGHPUT).get(door, lambda pairs: directed(pairs, "rtt_ms"))
    with pytest.raises(ParameterError, match=f"table pairs is '{type(given).__name__}'; allowed: a DataFrame"):
        call(given)


def test_an_infinite_rtt_is_left_out_and_counted_as_such():
    pairs = simulated_surveys.survey(9, seed=1)
    pairs.loc[0, "rtt_ms"] = np.inf
    assert "1 where rtt_ms is infinite" in str(methods.fit_rtt(pairs, resamples=40).slope)


def test_one_distance_for_all_is_named_in_km():
    with pytest.raises(ParameterError, match=r"every pair has the same distance \(1,000 km\)"):
        methods.fit_rtt(simulated_surveys.survey(6, seed=10).assign(distance_km=1000.0))


def test_places_of_a_table_without_the_catalogue_come_from_its_distances():
    pairs = simulated_surveys.survey(6, seed=1)
    near = pairs.distance_km.idxmin()
    ends = pairs.loc[near, ["from_region", "to_region"]]
    same = pairs.from_region.isin(ends) & pairs.to_region.isin(ends)
    pairs.loc[same, "distance_km"] = 30.0
    assert places.units(unordered(pairs, "rtt_ms")).n == 5
    assert isinstance(pd.Series(places.unit_of_region(unordered(pairs, "rtt_ms"))).nunique(), int)
