"""Source 004: each claim against its own numbers, and against made measurements whose verdict is known."""

import pytest
from tested_claims import CANNOT, NOT, OWN, UNKNOWN, UNTESTED, WITHIN, check_all_tested, check_shown, corrected

from wanbench.methods.claims import ledger
from wanbench.pages import price_performance
from wanbench.pages.price_performance.claims import SHOWN, SOURCE, messages_per_s, own_numbers


def audited(**measured):
    return price_performance.claims.price_performance(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tested(audited(), 120)


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("m6a-less", NOT, "(Intel) costs 11.1 % more"),
        ("m5a-less", NOT, "(Intel) costs 11.6 % more"),
        ("m6g-less", NOT, "(Intel) costs 24.7 % more"),
        ("m7g-less", NOT, "(Intel) costs 17.6 % more"),
        ("m7g-network-bytes", NOT, "15,000 Mbit/s over 8"),
        ("outbound", UNKNOWN, "1,250 against 1,563 MB/s do not"),
        ("m6a-more", WITHIN, ""),
        ("m6g-more", WITHIN, ""),
        ("m5-more", OWN, ""),
        ("m5-billion", UNKNOWN, "0.979 million messages/s, or 489 MB/s: per broker if"),
        ("same-partitions", UNKNOWN, "666.7 partitions per broker"),
        ("same-partitions", UNKNOWN, "at most 2.48 copies"),
        ("retention", UNTESTED, "at most 0.499 GB"),
        ("throttleable", CANNOT, "25 minutes"),
        ("burst", CANNOT, "over an hour"),
        ("architectures", UNTESTED, "what the source lists"),
        ("metrics", UNTESTED, "what the source lists"),
        ("two-types", UNKNOWN, "all Intel and AMD types crashed"),
        ("similar-ebs", NOT, "1.40 times"),
        ("more-produced", NOT, "0.91 times"),
        ("other-bottlenecks", UNKNOWN, "than the slowest of the three: m5."),
        ("saturated", UNKNOWN, "when m5a is saturated, m7g writes 38.6 %"),
        ("bottleneck", NOT, "m6a 833, m6g 594, m5a 360, m5 594"),
        ("iowait-network", NOT, "m6i 12,500, m6a 12,500"),
        ("leader", OWN, "m7g, then m6i with 6.9 % more"),
        ("clearly", UNKNOWN, "each broker cost 0.246 USD/h more"),
        ("clearly", UNKNOWN, "if m7g cost 0.349 USD/h"),
        ("x86-crashed", UNKNOWN, "only the 2 AMD types"),
        ("right-choice", CANNOT, "opinion"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = audited().loc[claim]
    assert row.own == verdict and text in row.working


def test_the_numbers_recomputed():
    found = audited().recomputed
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
    ],
)
def test_a_corrected_digit_corrects_the_verdict(values, claim, verdict):
    assert audited().own[claim] != verdict
    assert corrected(ledger.read_claims(SOURCE), own_numbers, values).own[claim] == verdict


def test_other_broker_sizes_are_shown_without_a_verdict():
    check_shown(audited, SHOWN)
