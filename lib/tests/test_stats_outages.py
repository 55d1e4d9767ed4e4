"""Outages and losses, against streams and records with a known answer."""

import numpy as np
import pandas as pd
import pytest
from fault_tables import episode, together

from wanbench.errors import ParameterError
from wanbench.methods.result.means import median_of, share_of, upper_bound
from wanbench.pages.region_loss.gaps import longest_gap
from wanbench.pages.region_loss.records import NAMES, account

STEADY = np.arange(0, 40, 0.05)


def stopped(begin, end, times=STEADY):
    return times[(times < begin) | (times >= end)]


def test_an_outage_is_what_the_schedule_does_not_leave_free():
    outage = longest_gap(stopped(10, 13), 10, 20, 39.9, usual_s=0.05)
    assert outage.length_s == pytest.approx(3.0) and outage.start_s == pytest.approx(9.95) and not outage.censored


def test_a_gap_after_healing_does_not_count_and_one_across_it_does():
    assert longest_gap(stopped(25, 30), 10, 20, 39.9, 0.05).length_s == pytest.approx(0, abs=1e-9)
    assert longest_gap(stopped(19, 30), 10, 20, 39.9, 0.05).length_s == pytest.approx(11)


def test_an_outage_without_an_end_is_a_lower_limit():
    outage = longest_gap(stopped(12, 50), 10, 20, 35, 0.05)
    assert outage.censored and outage.length_s == pytest.approx(23)
    assert longest_gap([], 10, 20, 35).censored


def test_an_outage_that_healing_ends_is_a_lower_limit():
    across = longest_gap(stopped(15, 21), 10, 20, 39.9, 0.05, healed_s=20)
    assert across.censored and across.length_s == pytest.approx(4.95 + 0.05 - 0.05, abs=0.06)
    shorter = longest_gap(stopped(10, 15, stopped(19, 21)), 10, 20, 39.9, 0.05, healed_s=20)
    assert not shorter.censored and shorter.length_s == pytest.approx(5.0)
    longer = longest_gap(stopped(10, 15, stopped(19, 30)), 10, 20, 39.9, 0.05, healed_s=20)
    assert longer.censored and longer.length_s == pytest.approx(5.0)


def counts(**arguments):
    rows = together([episode(**arguments)])
    return account(rows["fault_records"], rows["fault_receipts"], rows["fault_log"])


def named(found):
    return {name: n for name, n in found.items() if name in NAMES and n}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"lost": 7}, {"lost": 7}),
        ({"undelivered": 4}, {"undelivered": 4}),
        ({"doubled": 5}, {"duplicates_in_log": 5, "duplicates_in_delivery": 5}),
        ({"reread": 6}, {"duplicates_in_delivery": 6}),
        ({"fault": "none", "damage": "drop"}, {"undelivered": 3}),
        ({"fault": "none", "damage": "duplicate"}, {"duplicates_in_delivery": 3}),
        ({"fault": "none", "damage": "reorder"}, {"order_in_delivery": 3}),
        ({"fault": "none", "damage": "alter"}, {"damaged_in_delivery": 3}),
    ],
)
def test_every_fault_is_found_under_its_own_name_and_no_other(arguments, expected):
    found = counts(**arguments)
    assert named(found) == expected and found["acknowledged"] == 3 * 420


def test_disorder_in_the_log_reaches_the_consumer():
    assert named(counts(swapped_log=2)) == {"order_in_log": 2, "order_in_delivery": 2, "displaced": 4}


def test_damage_in_the_log_is_not_the_way_and_not_a_loss():
    rows = together([episode()])
    log = rows["fault_log"].copy()
    log.loc[[3, 8], "damaged"] = True
    log.loc[[3, 8], ["producer", "sequence"]] = pd.NA
    found = account(rows["fault_records"], rows["fault_receipts"], log)
    assert named(found) == {"damaged_in_log": 2}


def test_a_record_may_vanish_after_it_was_delivered():
    rows = together([episode()])
    found = account(rows["fault_records"], rows["fault_receipts"], rows["fault_log"].iloc[5:])
    assert (found["lost"], found["lost_after_delivery"], found["undelivered"], found["overwritten"]) == (5, 5, 0, 0)


def test_another_record_at_the_offset_of_a_lost_one_is_no_duplicate():
    rows = together([episode()])
    records, receipts, log = (rows[f"fault_{name}"].copy() for name in ("records", "receipts", "log"))
    place = log.loc[0, ["partition", "offset"]].to_dict()
    log = log.drop(index=0)  # truncated; a record that nobody acknowledged takes its offset, and is delivered too
    key = {"producer": 7, "sequence": 0}
    other = records.iloc[[0]].assign(**key, **place | {"offset": None}, acknowledged_at_s=None)
    other = other.astype({"offset": "Int64"})
    log = pd.concat([log, log.iloc[[0]].assign(**key, **place)], ignore_index=True)
    last = {"received_at_s": receipts.received_at_s.max() + 1}
    receipts = pd.concat([receipts, receipts.iloc[[0]].assign(**key, **place, **last)], ignore_index=True)
    found = account(pd.concat([records, other], ignore_index=True), receipts, log)
    assert named(found) == {"lost": 1}
    assert found["overwritten"] == found["lost_after_delivery"] == 1
    assert named(account(records, receipts, log))["unsent"] == 1


def test_a_damaged_receipt_counts_even_where_an_intact_one_follows():
    rows = together([episode()])
    receipts = rows["fault_receipts"]
    spoilt = receipts.iloc[[7]].assign(damaged=True, producer=pd.NA, sequence=pd.NA)
    found = account(rows["fault_records"], pd.concat([receipts, spoilt], ignore_index=True), rows["fault_log"])
    assert named(found) == {} and found["damaged_receipts"] == 1


def test_a_missing_column_is_named():
    rows = together([episode()])
    with pytest.raises(ParameterError, match="lacks column offset"):
        account(rows["fault_records"].drop(columns="offset"), rows["fault_receipts"], rows["fault_log"])


def test_three_episodes_have_an_interval_of_75_per_cent():
    found = median_of([3.0, 5.0, 4.0], quantity="x", claim="it is {}")
    assert (found.estimate, found.low, found.high, found.level) == (4.0, 3.0, 5.0, 0.75)
    assert median_of(range(1, 11), quantity="x", claim="{}").level == 0.95


def test_a_lower_limit_below_what_was_seen_lowers_the_interval():
    """13.6 s was seen to its end; 4.7 s and 5 s were cut off, and may have been no longer."""
    found = median_of([13.6, 4.7, 5.0], [False, True, True], quantity="x", claim="{}")
    assert found.at_least and (found.estimate, found.low, found.high) == (5.0, 4.7, np.inf)
    sure = median_of([1.0, 2.0, 9.0], [False, False, True], quantity="x", claim="{}")
    assert not sure.at_least and (sure.estimate, sure.low, sure.high) == (2.0, 1.0, np.inf)


def test_the_interval_of_a_median_covers_as_it_says():
    rng = np.random.default_rng(1)
    for n, level in ((3, 0.75), (5, 0.9375), (12, 0.95)):
        sets = rng.lognormal(size=(500, n))
        ends = [median_of(values, quantity="x", claim="{}") for values in sets]
        assert ends[0].level == pytest.approx(level)
        # three standard errors: a right interval falls below in one of 700 simulations
        least = level - 3 * np.sqrt(level * (1 - level) / len(sets))
        assert np.mean([one.low <= 1 <= one.high for one in ends]) >= least


def test_an_outage_without_an_end_opens_the_interval():
    found = median_of([3.0, 2.0, 9.0], [False, False, True], quantity="x", claim="{}")
    assert (found.estimate, found.high) == (3.0, np.inf) and "may be longer" in found.warnings[0]
    assert not found.at_least and found.formatted_with_interval == "3.00 s (75 % interval at least 2.00)"
    limit = median_of([3.0, 8.0, 8.0], [False, True, True], quantity="x", claim="it is {}")
    assert limit.at_least and limit.sentence.startswith("it is at least 8")


def test_nothing_lost_bounds_the_share():
    assert upper_bound(16739) * 16739 == pytest.approx(3, abs=0.01)
    none, some = (share_of(k, 1000, quantity="x", claim="{}") for k in (0, 10))
    assert none.low == 0 and none.high == pytest.approx(0.00299, rel=1e-2) and some.low > 0.004
