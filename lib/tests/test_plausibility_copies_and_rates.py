"""What lies close to a fault and is none: the rules of halves, near answers, two units, limiters and copied days."""

import numpy as np
import pandas as pd
import pytest
from simulations import clean_tables, planted_faults

from wanbench import tables
from wanbench.read import plausibility
from wanbench.read.plausibility import rate_units, rates

RTTS = ["min_rtt_ms", "mean_rtt_ms", "max_rtt_ms", "sd_rtt_ms"]


def rules(made):
    return set(plausibility.check(made).rule)


def one_way(frame, k):
    return (frame.from_region == frame.from_region[k]) & (frame.to_region == frame.to_region[k])


def test_one_pair_halved_both_ways_blames_no_region():
    made = clean_tables.clean(6, form="grid", n_regions=16)
    frame = made["pings"].copy()
    k = frame.min_rtt_ms.idxmax()
    back = (frame.from_region == frame.to_region[k]) & (frame.to_region == frame.from_region[k])
    rows = one_way(frame, k) | back
    frame.loc[rows, RTTS] = frame.loc[rows, RTTS] / 2
    flags = plausibility.check(made | {"pings": frame})
    assert flags.region.isna().all() and set(flags.scope) <= {"row"}


@pytest.mark.parametrize("rtt_ms", [0.093, 0.213, 0.341])
def test_one_answer_from_near_is_not_called_seconds(rtt_ms):
    made = clean_tables.clean(5, form="grid", n_regions=16)
    frame = made["pings"].copy()
    rows = one_way(frame, frame.min_rtt_ms.idxmax())
    steps = np.arange(rows.sum())[:, None] * [0.002, 0.003, 0.004, 0.0]
    frame.loc[rows, RTTS] = np.array([rtt_ms, rtt_ms, rtt_ms, 0.0]) + steps
    flags = plausibility.check(made | {"pings": frame})
    assert len(flags) == rows.sum() and set(flags.rule) == {"light"}
    assert flags.cause.str.startswith("an answer from near the sender (by a NAT or a proxy)").all()


def test_a_thousandth_with_a_thousandths_decimals_is_in_seconds():
    made = clean_tables.clean(5, form="grid", n_regions=16)
    frame = made["pings"].copy()
    rows = one_way(frame, frame.min_rtt_ms.idxmax())
    frame.loc[rows, RTTS] = frame.loc[rows, RTTS] * 1.15 / 1000
    flags = plausibility.check(made | {"pings": frame})
    assert set(flags.rule) == {"unit of RTT"} and len(flags) == rows.sum()


def transfers_over(rtt_ms, rate):
    """Transfers of 40 pairs of far regions and of neighbours, with the RTTs of both."""
    ends = [(f"x:{k // 8}", f"y:{k % 8}") for k in range(len(rtt_ms))]
    rows = [
        {"from_region": a, "to_region": b, "source_file": "a", "direction": "forward", "protocol": "TCP"}
        | {"streams": 1, "throughput_bps": bps, "min_rtt_ms": rtt}
        for (a, b), rtt, bps in zip(ends, rtt_ms, rate, strict=True)
    ]
    return {"transfers": tables.from_rows("transfers", rows)}


def test_rates_of_a_window_over_near_and_far_pairs_are_in_one_unit():
    rng = np.random.default_rng(1)
    rtt = np.where(np.arange(64) % 4 == 0, rng.uniform(0.2, 0.3, 64), rng.uniform(180, 300, 64))
    rate = 8 * 65_536 / rtt * 1000 * rng.uniform(0.5, 1, 64)
    assert np.diff(np.sort(np.log10(rate))).max() > rate_units.GAP
    assert not rules(transfers_over(rtt, rate))
    two = transfers_over(rtt, np.where(np.arange(64) % 3 == 0, rate / 1000, rate))
    assert rules(two) == {rate_units.TWO_UNITS.name}


def test_a_slow_region_is_no_other_unit():
    rng = np.random.default_rng(2)
    rtt, rate = rng.uniform(20, 300, 64), rng.uniform(3e8, 9e8, 64)
    rate[:8] /= 1000
    assert not rules(transfers_over(rtt, rate))


@pytest.mark.parametrize(("at", "found"), [(1e9, True), (4.8e8, True), (7.1e8, False), (5e6, True), (4.2e6, False)])
def test_a_heap_is_a_limiter_at_round_numbers_alone(at, found):
    rng = np.random.default_rng(3)
    rtt = rng.uniform(20, 300, 64)
    rate = np.minimum(at * rng.uniform(0.1, 2, 64), at * rng.uniform(0.996, 1, 64)).round()
    assert (rules(transfers_over(rtt, rate)) == {rates.LIMITER.name}) == found
    assert not rules(transfers_over(np.full(64, 50.0), rate))


@pytest.mark.parametrize("decimals", [0, 3])
def test_the_same_values_a_day_later_are_copies_where_they_have_digits(decimals):
    first = clean_tables.clean(3, form="grid", n_regions=10)["pings"]
    first = first.assign(started_at_utc=pd.Timestamp("2026-03-01", tz="UTC"))
    first[RTTS] = first[RTTS].round(decimals)
    other = clean_tables.clean(3, form="pings", n_regions=10)["pings"]
    other = other.assign(started_at_utc=pd.Timestamp("2026-03-02", tz="UTC"))
    for second, copied in ((first, True), (other, False)):
        again = second.assign(started_at_utc=pd.Timestamp("2026-03-02", tz="UTC"))
        both = tables.validate("pings", pd.concat([first, again], ignore_index=True))
        named = "copied day" in rules({"pings": both})
        assert named == (copied and decimals > 0)


def test_transfers_of_another_day_are_judged_too():
    made = clean_tables.clean(7, form="survey", n_regions=10)["transfers"]
    again = made.assign(started_at_utc=made.started_at_utc + pd.Timedelta(days=2))
    flags = plausibility.check({"transfers": tables.validate("transfers", pd.concat([made, again], ignore_index=True))})
    assert set(flags.rule) == {"copied day"} and "2 days" in flags.found[0]


def test_a_known_limit_is_no_finding():
    planted = planted_faults.plant("a rate limiter at a round number", 1, n_regions=12)
    pairs = planted.tables["transfers"][["from_region", "to_region"]].drop_duplicates().to_dict("records")
    link = {"run_id": "r", "delay_ms": 0.0, "jitter_ms": 0.0, "loss": 0.0, "rate_bps": 1e12}
    links = tables.from_rows("links", [link | pair for pair in pairs])
    assert plausibility.check(planted.tables | {"links": links}).empty


@pytest.mark.parametrize("sent_bps, flagged", [(14e6, False), (80e6, True)])
def test_a_sender_may_count_what_its_socket_buffer_holds(sent_bps, flagged):
    ends = {"run_id": "r", "from_region": "lab:a", "to_region": "lab:b"}
    row = {
        "test_id": "t",
        "attempt": 1,
        "source_file": "f",
        "direction": "forward",
        "protocol": "TCP",
        "duration_s": 6.0,
    }
    row |= {"throughput_bps": 9.5e6, "bytes": 7_125_000, "sent_throughput_bps": sent_bps}
    link = {"delay_ms": 10.0, "jitter_ms": 0.0, "loss": 0.0, "rate_bps": 10e6}
    made = {name: tables.from_rows(name, [ends | one]) for name, one in (("transfers", row), ("links", link))}
    assert bool(rules(made)) == flagged
