"""Source 003, tests 1 to 3: each claim against its own tables, and against made measurements whose verdict is known."""

from dataclasses import dataclass

import pytest
from tested_claims import (
    CANNOT,
    NOT,
    OWN,
    UNKNOWN,
    UNTESTED,
    WITHIN,
    check_all_tested,
    check_shown,
    corrected,
    estimate,
)  # fmt: skip

from wanbench.errors import ParameterError
from wanbench.methods.claims import ledger
from wanbench.methods.result import Estimate, Result
from wanbench.pages import tail_latency
from wanbench.pages.tail_latency.claims import PAGE, SHOWN, SOURCE, own_numbers


@dataclass(repr=False)
class Measured(Result):
    ratio: Estimate


def audited(**measured):
    return tail_latency.claims.tail_latency(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tested(audited(), 132)


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("title", OWN, "943 / 73 = 12.92 as a ratio, 11.92 as an excess"),
        ("title", OWN, "2 of 12 rows reach the claimed ratio"),
        ("figure-1", OWN, "The row has 12.92."),
        ("p99-times", NOT, "777 / 67 = 11.60 as a ratio, 10.60 as an excess"),
        ("t1-improvement", OWN, "as the source's column of improvements does"),
        ("t2-improvement", WITHIN, "it would be 10.6"),
        ("t3-times", UNKNOWN, "no numbers of figure 8"),
        ("range-low", NOT, "30 MB/s is egress alone"),
        ("t1-low-aggregate", NOT, "4 times ingress"),
        ("t1-high-aggregate", OWN, ""),
        ("figure-1-aggregate", OWN, ""),
        ("cku2-partitions", OWN, "45 topics of 200. A CKU then has 4,500 partitions"),
        ("cku28-partitions", OWN, "500 topics of 200. A CKU then has 3,571 partitions"),
        ("cku28-ingress", OWN, "as much per CKU as with 2"),
        ("f7-2-load", UNTESTED, "175 per topic, 87.5 %"),
        ("f6-1-gain", OWN, "(69 - 42) / 42"),
        ("f6-7-gain", WITHIN, "9.83"),
        ("more-stable", OWN, "8.7 times at 2 CKU and 23.0 times at 28 CKU"),
        ("stays-low", NOT, "5.8 times at 2 CKU and 2.9 times at 28 CKU"),
        ("figure-5-consistent", NOT, "gives no limit"),
        ("figure-5-expands", OWN, "1.64, 1.73, 2.05, 9.83, 12.92 at 28 CKU"),
        ("t2-consistent", NOT, "1.41, 3.04, 2.47 at 2 CKU"),
        ("tiering", UNKNOWN, "244 ms with 6,750, 168 ms with 7,875, 242 ms with 9,000"),
        ("not-alike", UNKNOWN, "all 12 rows, although only 2 are marked"),
        ("linger", UNTESTED, "1.1 messages at the lowest throughput and 14.0"),
        ("batch", OWN, "16,384 bytes"),
        ("duration", UNTESTED, "2.52 billion messages"),
        ("f6-3-kora", CANNOT, "Kora"),
        ("scales", UNTESTED, "that the source lists"),
        ("defaults-worse", UNTESTED, "no figures"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = audited().loc[claim]
    assert row.own == verdict and text in row.working


def test_the_column_of_improvements_recomputed():
    rows = audited()
    expected = {
        "f6-1": (64.286, OWN), "f6-2": (83.333, OWN), "f6-3": (147.107, OWN), "f6-4": (64.0, OWN),
        "f6-5": (73.077, OWN), "f6-6": (104.762, WITHIN), "f6-7": (883.019, WITHIN), "f6-8": (1191.781, OWN),
        "f7-1": (41.393, WITHIN), "f7-2": (204.167, WITHIN), "f7-3": (634.483, WITHIN), "f7-4": (1059.701, OWN),
    }  # fmt: skip
    for row, (percent, verdict) in expected.items():
        found = rows.loc[f"{row}-gain"]
        assert found.recomputed == pytest.approx(percent, abs=1e-3) and found.own == verdict, row


@pytest.mark.parametrize(
    "values, claim, verdict",
    [
        ({"p99_times": "13"}, "p99-times", OWN),
        ({"t2_improvement": "11.6"}, "t2-improvement", OWN),
        ({"t1_improvement": "13"}, "t1-improvement", NOT),
        ({"t1_low_aggregate": "40"}, "t1-low-aggregate", OWN),
        ({"fan_out": "2"}, "t1-low-aggregate", OWN),
        ({"fan_out": "2"}, "figure-1-egress", NOT),
        ({"f6_7_gain": "883"}, "f6-7-gain", OWN),
        ({"f6_7_kora": "54"}, "f6-7-gain", NOT),
        ({"f6_7_kafka": "80"}, "figure-5-expands", NOT),
        ({"f6_1_kora": "130", "f6_2_kora": "130", "f6_4_kora": "40", "f6_5_kora": "40"}, "stays-low", OWN),
        ({"f7_1_kora": "200"}, "t2-consistent", OWN),
        ({"f7_2_load": "7876"}, "f7-2-load", NOT),
        ({"f6_8_load": "1.5"}, "f6-8-load", NOT),
        ({"t1_28cku_topics": "400"}, "cku28-partitions", NOT),
        ({"f6_8_kafka": "600", "f7_4_kafka": "600"}, "title", NOT),
        ({"f6_1_kora": "70"}, "t1-better", NOT),
    ],
)
def test_a_corrected_digit_corrects_the_verdict(values, claim, verdict):
    assert audited().own[claim] != verdict
    assert corrected(ledger.read_claims(SOURCE).on_page(PAGE), own_numbers, values).own[claim] == verdict


@pytest.mark.parametrize("given", ["throughput_growth", "partitions_growth"])
def test_a_rerun_of_apache_kafka_gives_its_own_verdict(given):
    claim = f"kafka-{given.removesuffix('_growth')}"
    for numbers, n, verdict in (
        ((9, 7, 11), 3, OWN),
        ((1.2, 1.1, 1.3), 3, NOT),
        ((2, 1.5, 3), 3, UNKNOWN),
        ((22, float("nan"), float("nan")), 1, UNKNOWN),
    ):
        rows = audited(**{given: Measured(estimate(*numbers, n=n))})
        assert rows.rerun[claim] == verdict and rows.own[claim] == OWN, numbers


def test_two_other_systems_are_shown_without_a_verdict():
    check_shown(audited, SHOWN)


def test_some_claims_can_be_shown_without_others():
    audit = tail_latency.claims.tail_latency()
    part = audit.only("synthetic", "penalised")
    assert part.table().claim.tolist() == ["synthetic", "penalised"]
    with pytest.raises(ParameterError, match="claim of 003-tail-latency is 'other'"):
        audit.only("other")
