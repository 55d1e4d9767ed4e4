"""Source 004: each claim against its own numbers, and against made measurements whose verdict is known."""

import pytest
from tried_claims import CANNOT, NOT, OWN, UNKNOWN, WITHIN, check_all_tried, corrected, estimate

from wanbench import claims as audits
from wanbench.claims import ledger
from wanbench.claims.price_performance import PAGE, RULES, SHOWN, SOURCE
from wanbench.claims.price_performance_own import messages_per_s, own_numbers
from wanbench.errors import ParameterError


def tried(**measured):
    return audits.price_performance(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tried(tried(), SOURCE, PAGE, 119)


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("m6a-less", NOT, "Intel costs 11.1 % more"),
        ("m5a-less", NOT, "Intel costs 11.6 % more"),
        ("m6g-less", NOT, "Intel costs 24.7 % more"),
        ("m7g-less", NOT, "Intel costs 17.6 % more"),
        ("m7g-network-bytes", NOT, "15,000 Mbit/s over 8"),
        ("outbound", UNKNOWN, "1,250 against 1,563 MB/s, they would not"),
        ("m6a-more", WITHIN, ""),
        ("m6g-more", WITHIN, ""),
        ("m5-more", OWN, ""),
        ("m5-billion", UNKNOWN, "0.979 million messages/s, 489 MB/s, for each of the 3 brokers"),
        ("same-partitions", UNKNOWN, "666.7 each"),
        ("same-partitions", UNKNOWN, "2.48 copies at most"),
        ("retention", UNKNOWN, "0.499 GB at most"),
        ("throttleable", OWN, "75 minutes"),
        ("similar-ebs", NOT, "1.40 times"),
        ("more-produced", NOT, "0.91 times"),
        ("other-bottlenecks", UNKNOWN, "ahead of the last of the former three: m5."),
        ("saturated", UNKNOWN, "when m5a is full, m7g writes 38.6 %"),
        ("bottleneck", NOT, "m6a 833, m6g 594, m5a 360, m5 594"),
        ("iowait-network", NOT, "m6i 12,500, m6a 12,500"),
        ("leader", OWN, "m7g, then m6i with 6.9 % more"),
        ("clearly", UNKNOWN, "0.246 USD/h more per broker"),
        ("clearly", UNKNOWN, "if m7g costs 0.349 USD/h"),
        ("x86-crashed", UNKNOWN, "Other sentences say otherwise"),
        ("right-choice", CANNOT, "opinion"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = tried().loc[claim]
    assert row.verdict == verdict and text in row.working


def test_the_numbers_recomputed():
    found = tried().recomputed
    expected = {
        "m6a-less": 10.0, "m5a-less": 10.41667, "m6g-less": 19.79167, "m7g-less": 15.0, "m7g-network-bytes": 1875.0,
        "m5-more": 21.1111, "m6i-more": 6.8889, "m6a-more": 14.4444, "m5a-more": 41.1111, "m6g-more": 13.3333,
    }  # fmt: skip
    assert found[list(expected)].to_dict() == pytest.approx(expected, rel=1e-4)
    rate = messages_per_s(ledger.read_claims(SOURCE), "m7g")
    assert rate * 3600 / 1e9 * 0.090 == pytest.approx(0.3264)


def test_where_both_cost_the_same():
    """Adding the stated sum to both, or taking the stated price for the leader, ties the costs per message."""
    audit = ledger.read_claims(SOURCE)
    rate = {name: messages_per_s(audit, name) for name in ("m7g", "m6i")}
    assert (0.3264 + 0.2458) / rate["m7g"] == pytest.approx((0.384 + 0.2458) / rate["m6i"], rel=1e-3)
    assert 0.34889 / rate["m7g"] == pytest.approx(0.384 / rate["m6i"], rel=1e-3)


@pytest.mark.parametrize(
    "values, claim, verdict",
    [
        ({"m6g_less": "20"}, "m6g-less", OWN),
        ({"m7g_network_bytes": "1875"}, "m7g-network-bytes", OWN),
        ({"m7g_network": "10000"}, "m7g-network-bytes", OWN),
        ({"m7g_network": "10000"}, "outbound", NOT),
        ({"m6a_more": "14"}, "m6a-more", OWN),
        ({"m6i_billion": "0.085"}, "leader", NOT),
        ({"m7g_billion": "0.080"}, "ice-lake", NOT),
        ({"m7g_billion": "0.080"}, "more-produced", OWN),
        ({"m6a_ebs": "5000"}, "similar-ebs", OWN),
        ({"partitions": "2001"}, "same-partitions", OWN),
        ({"m6a_network": "10000"}, "iowait-network", OWN),
        ({"m6a_ebs_bytes": "400", "m6g_ebs_bytes": "400"}, "bottleneck", OWN),
        ({"m5_price": "0.39"}, "m5-price", NOT),
        ({"duration": "60"}, "throttleable", NOT),
    ],
)
def test_a_corrected_digit_corrects_the_verdict(values, claim, verdict):
    assert tried().verdict[claim] != verdict
    assert corrected(ledger.read_claims(SOURCE), own_numbers, values).verdict[claim] == verdict


@pytest.mark.parametrize(
    "given, claim, by_value",
    [
        ("unresponsive", "iowait-grows", {(1, 0.6, 1): OWN, (0, 0, 0.4): NOT, (0.5, 0.2, 0.8): UNKNOWN}),
        ("disk_limit", "bottleneck", {(2, 1.5, 3): NOT, (1, 0.8, 1.2): NOT}),
        ("producer_latency", "producer-latency", {(1.1, 1, 1.2): OWN, (3, 2, 4): NOT, (1.5, 1, 2): UNKNOWN}),
        (
            "iowait_share",
            "iowait-total",
            {(0.8, 0.7, 0.9): OWN, (0.2, 0.1, 0.3): NOT, (0.5, 0.4, 0.6): UNKNOWN},
        ),
    ],
)
def test_a_rerun_gives_the_verdict(given, claim, by_value):
    for numbers, verdict in by_value.items():
        row = tried(**{given: estimate(*numbers)}).loc[claim]
        assert row.verdict == verdict and "Re-run:" in row.working, numbers


def test_every_estimate_moves_its_own_claims_alone():
    alone = tried()
    claims = {name: {rule.claim for rule in rules} for name, rules in RULES.items()}
    for given, own in (claims | {name: set(each) for name, each in SHOWN.items()}).items():
        rows = tried(**{given: estimate(0.5, 0.4, 0.6)})
        assert set(rows.index[rows.working != alone.working]) == own, given
        if given in SHOWN:
            assert (rows.verdict == alone.verdict).all()


def test_what_is_no_estimate_is_refused():
    with pytest.raises(ParameterError, match=r"cost_lead is 1\.07; allowed: an Estimate, a Result"):
        tried(cost_lead=1.07)
