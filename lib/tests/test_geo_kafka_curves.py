"""Curves of one factor at a time: against simulated trials whose ratios are known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from geo_trials import one_at_a_time, rates, trial

from wanbench.errors import MissingDataError, ParameterError, RawDataError
from wanbench.pages.geo_kafka import curves, evidence
from wanbench.pages.geo_kafka.against_baseline import RESTARTED
from wanbench.pages.geo_kafka.curves import UNEQUAL
from wanbench.pages.geo_kafka.factor_columns import level_labels, with_settings

FACTORS = {
    ("batch_bytes", 16_384): 0.25, ("batch_bytes", 131_072): 2.0, ("partitions", 36): 1.5, ("partitions", 144): 0.6,
    ("consumer_groups", 0): 1.05,
}  # fmt: skip


LINKS = pd.DataFrame(
    [{"run_id": "run", "from_region": a, "to_region": b, "rate_bps": 5e7} for a in "abc" for b in "abc" if a != b]
)
"""A gateway of 100 Mbit/s has the rate of the two links that leave a region."""


@cache
def plain():
    """Curves of trials with `FACTORS`, for tests that do not change them."""
    return curves(rates(one_at_a_time(FACTORS)))


def test_ratios_are_found():
    found = curves(rates(one_at_a_time(FACTORS, noise=0.02)))
    for (name, level), ratio in FACTORS.items():
        one = found.ratio({name: level}, {}, quantity="q", claim="It is {}")
        assert one.estimate == pytest.approx(ratio, rel=0.05) and one.n == 6
        assert one.low < one.estimate < one.high and "pooled" in one.method and "same relative" in one.assumption


def test_an_interval_alone_is_narrower_than_one_that_holds_with_the_others():
    found = plain()
    alone = found.ratio({"partitions": 36}, {}, quantity="q", claim="It is {}")
    together = next(one for one in found.of("partitions").ratios if one.quantity == "36")
    assert alone.estimate == pytest.approx(together.estimate) and together.low < alone.low < alone.high < together.high


def test_a_ratio_can_rest_on_the_trials_of_its_two_settings_alone():
    """Where one of two settings scatters more than all others, the pooled scatter says too little of their ratio."""
    rows = one_at_a_time(FACTORS, noise=0.01)
    rows += [trial("wild", 1e8 * (0.6, 1.0, 1.6)[b - 1], block=b, linger_ms=0.0) for b in (1, 2, 3)]
    found = curves(rates(rows))
    about = {"quantity": "q", "claim": "It is {}"}
    own, pooled = (found.ratio("wild", "baseline", **about, pooled=each) for each in (False, True))
    assert own.low < pooled.low < own.estimate == pooled.estimate < pooled.high < own.high
    assert "pairs of trials within blocks" in own.method and "pooled" not in own.method + own.assumption
    once = curves(rates(one_at_a_time(FACTORS, blocks=2)[:-1]))
    single = once.ratio({"consumer_groups": 0}, {}, **about, pooled=False)
    assert np.isnan(single.low) and "no interval" in str(single)


def test_blocks_take_off_what_they_share():
    calm, drifting = (curves(rates(one_at_a_time(FACTORS, shift=shift))) for shift in (0.0, 0.5))
    assert calm.of("partitions").range.high == pytest.approx(drifting.of("partitions").range.high)


def test_a_curve_turns_down_where_more_gives_less():
    found = plain()
    assert "falls beyond its best level" in found.of("partitions").sentence and found.of("partitions").last.high < 1
    assert "rises up to the highest level tried" in found.of("batch_bytes").sentence
    assert found.of("partitions").levels.label.tolist() == ["9", "36", "144"]
    assert "largest effect: With batch size" in str(found) and "smallest effect: With consumers" in str(found)


def test_neither_rise_nor_fall_is_claimed_where_the_interval_shows_none():
    """Equal at all levels but by chance: whichever is highest, the interval that holds for the choice spans 1."""
    flat = {("partitions", level): 1.0 for level in (18, 36, 72, 144)}
    for seed in range(6):
        one = curves(rates(one_at_a_time(flat, seed=seed))).of("partitions")
        assert one.last.low < 1 < one.last.high and "neither a gain nor a loss is shown" in one.sentence
    rise = curves(rates(one_at_a_time({("partitions", 18): 2.0, ("partitions", 36): 2.02}))).of("partitions")
    assert "Beyond" in rise.turn and "rises" not in rise.turn


def test_restarts_between_settings_are_cautioned_where_others_share_one():
    rows = one_at_a_time({("partitions", 18): 1.0})
    rows += [trial("f", 6e7, block=b, broker_settings={"num.replica.fetchers": 3}) for b in (1, 2, 3)]
    found = curves(rates(rows))
    assert RESTARTED in found.of("replica_fetching").range.warnings
    assert not found.of("partitions").range.warnings
    assert "how replicas fetch: brokers were restarted" in str(found)
    apart = [row for row in rows if row["setting"] in ("baseline", "f")]
    assert RESTARTED not in str(curves(rates(apart)).of("replica_fetching"))
    about = {"quantity": "q", "claim": "It is {}"}
    pooled, own = (found.ratio("f", "baseline", **about, pooled=each) for each in (True, False))
    assert RESTARTED in pooled.warnings and RESTARTED not in own.warnings  # it warns of the pooled scatter


def test_settings_decide_and_not_names():
    """Settings under any name, cold trials without a block, and combinations that belong to no curve."""
    rows = one_at_a_time(FACTORS)
    rows.append(trial("default", 1e6, block=1, batch_bytes=16_384, partitions=3, compression="lz4"))
    cold = trial("batch_bytes 16384", 1.0, batch_bytes=16_384)
    rows.append(cold | {"block": None})
    found = curves(rates(rows))
    assert list(found.curves) == ["batch_bytes", "partitions", "consumers"]
    assert found.of("batch_bytes").levels.n.tolist() == [
        3,
        3,
        3,
    ] and "1 trial left out, for lack of a throughput or a block" in str(found)
    gain = found.ratio("baseline", "default", quantity="tuned over default", claim="It is {}")
    assert gain.estimate == pytest.approx(50, rel=0.1)
    with pytest.raises(MissingDataError, match="changes security alone"):
        found.of("security")
    with pytest.raises(MissingDataError, match="the baseline with acks 1 was not measured"):
        found.ratio({"acks": "1"}, {}, quantity="q", claim="c")
    with pytest.raises(ParameterError, match="heap"):
        found.ratio({"heap": 1}, {}, quantity="q", claim="c")


def test_buffers_and_fetching_are_two_factors_of_the_brokers_settings():
    rows = one_at_a_time({("partitions", 18): 1.0})
    small = {"broker_settings": {"replica.socket.receive.buffer.bytes": 65_536}, "client_send_buffer_bytes": 131_072}
    rows += [trial("buffers", 1e7, block=block, **small) for block in (1, 2, 3)]
    rows += [trial("f", 6e7, block=block, broker_settings={"num.replica.fetchers": 3}) for block in (1, 2, 3)]
    found = curves(rates(rows))
    assert found.of("buffers").levels.n.tolist() == [3, 3]
    assert found.of("buffers").levels.label.tolist() == ["kernel's own", "131,072 bytes"]
    assert found.of("replica_fetching").levels.label.tolist() == ["default", "num.replica.fetchers 3"]


def test_the_ratio_of_compression_is_reported():
    rows = one_at_a_time({})
    rows += [trial("zstd", 9e7, block=block, compression="zstd", packed=4.0) for block in (1, 2, 3)]
    levels = curves(rates(rows)).of("compression").levels
    assert levels.compression.tolist() == pytest.approx([1.0, 4.0])


def test_without_repeats_there_is_no_interval_and_a_caution():
    found = curves(rates(one_at_a_time(FACTORS, blocks=1)))
    assert np.isnan(found.of("partitions").range.low) and "no setting was measured twice" in str(found)


def test_settings_that_do_not_scatter_alike_are_cautioned():
    rng, rows = np.random.default_rng(1), []
    for partitions, noise in ((9, 0.01), (36, 0.6), (18, 0.01)):
        name = "baseline" if partitions == 9 else f"partitions {partitions}"
        values = 1e7 * np.exp(rng.normal(0, noise, 6))
        rows += [trial(name, bps, partitions=partitions) for bps in values]
    assert "have unequal scatter" in str(curves(rates(rows)))


def test_no_verdict_rests_on_one_scatter_for_settings_that_do_not_scatter_alike():
    alike, rows = curves(rates(one_at_a_time(FACTORS))), one_at_a_time(FACTORS, noise=0.01)
    rows += [trial("wild", 1e8 * (0.6, 1.0, 1.6)[b - 1], block=b, linger_ms=0.0) for b in (1, 2, 3)]
    apart = curves(rates(rows))
    assert "pooled" in evidence(alike, LINKS)["batches"].method
    assert "pairs of trials within blocks" in evidence(apart, LINKS)["batches"].method
    assert UNEQUAL in apart.of("partitions").range.warnings and UNEQUAL not in str(apart)
    assert UNEQUAL not in alike.of("partitions").range.warnings


def test_blocks_that_cannot_be_told_from_settings_are_left_out():
    rows = [trial("baseline", 1e7 + n, block=1) for n in range(2)]
    rows += [trial("more", 2e7 + n, block=2, partitions=18) for n in range(2)]
    assert curves(rates(rows)).compared.freedom == 2


@pytest.mark.parametrize("baseline", ["none", 3])
def test_a_baseline_that_was_not_measured_is_refused(baseline):
    with pytest.raises(MissingDataError, match="was measured; there are baseline"):
        curves(rates(one_at_a_time(FACTORS)), baseline=baseline)


def test_a_baseline_of_two_settings_is_refused():
    rows = one_at_a_time({})
    rows.append(trial("baseline", 1e7, partitions=18))
    with pytest.raises(ParameterError, match="2 combinations"):
        curves(rates(rows))


def test_broker_settings_that_are_no_object_are_refused():
    with pytest.raises(RawDataError, match="a JSON object"):
        with_settings(rates([trial("baseline", 1e7, broker_settings="[1]")]).rates)


def test_figures_name_every_level():
    found = plain()
    drawn = found.figure()
    assert len(drawn.data) == 3 and "batch size: 16,384 bytes" in drawn.layout.yaxis.ticktext
    assert drawn.layout.meta["alt"] and drawn.layout.xaxis.type == "log"
    assert "zstd" not in found.of("consumers").formatted_table().to_string()


def test_without_factors_there_is_no_figure_and_a_section_is_left_out():
    found = replace(plain(), curves={})
    assert "No factor was varied alone" in str(found)
    with pytest.raises(MissingDataError, match="no factor was varied alone"):
        found.figure()


def test_labels_show_what_tells_levels_apart():
    levels = pd.DataFrame({"acks": ["1", "all", "all"], "min_insync": [None, 1.0, 2.0]}, dtype=object)
    assert level_labels(levels)[1:] == ["acks all, min.insync 1", "acks all, min.insync 2"]


def test_evidence_is_what_was_measured_and_nothing_else():
    rows = one_at_a_time({**FACTORS, ("acks", "1"): 2.0, ("gateway_bps", 1e8): 0.5, ("linger_ms", 0.0): 0.8})
    rows += [trial("tuned", 2e8, block=b, producers=6, compression="lz4") for b in (1, 2, 3)]
    drawn = curves(rates(rows))
    found = evidence(drawn, LINKS)
    assert set(found) == {"consistency", "batches", "linger", "consumers_cost", "gateway"}
    assert found["batches"].estimate == pytest.approx(8, rel=0.1) and found["gateway"].estimate == pytest.approx(
        2, rel=0.1
    )
    slower = LINKS.assign(rate_bps=2e8)  # a gateway of half their rate is slower by construction
    assert "gateway" not in evidence(drawn, slower)
    assert "gateway" not in evidence(drawn, LINKS.assign(rate_bps=[5e7, None] * 3))
    cost = found["consumers_cost"]
    assert cost.low < 100 * (1 - 1 / 1.05) < cost.high and cost.unit == "%"


def test_evidence_of_both_ends_of_producers_buffers_and_tuning():
    kafkas = {"client_send_buffer_bytes": None, "client_receive_buffer_bytes": 65_536}
    rows = one_at_a_time({("producers", 1): 0.5, ("producers", 6): 1.5})
    rows += [trial("small", 1e7, block=b, **kafkas) for b in (1, 2, 3)]
    rows += [trial("default", 1e6, block=b, producers=1, partitions=3) for b in (1, 2, 3)]
    rows += [trial("tuned", 1e8, block=b, producers=6, compression="lz4") for b in (1, 2, 3)]
    found = evidence(curves(rates(rows)), LINKS)
    assert found["producers"].estimate == pytest.approx(0.5, rel=0.1)
    assert found["producers_gain"].estimate == pytest.approx(3, rel=0.1)
    assert found["buffers"].estimate == pytest.approx(5, rel=0.1)
    assert found["tuned_over_default"].estimate == pytest.approx(100, rel=0.1)


def test_trials_at_a_steady_rate_are_apart_from_those_flat_out():
    steady = [trial("steady", 1.6e7, block=b, target_records_per_s=2000.0) for b in (1, 2, 3)]
    far = [trial("far", 1.6e7, block=b, target_records_per_s=2000.0, client_rack="region") for b in (1, 2, 3)]
    made = rates(one_at_a_time(FACTORS) + steady + far)
    assert "target_records_per_s" not in curves(made).curves and len(curves(made).frame) == 18
    assert list(curves(made, baseline="steady").curves) == ["consumers"]
