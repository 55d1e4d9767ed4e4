"""Source 003, second half: rolls and degraded brokers, on its own numbers and on made measurements."""

import pytest
from tested_claims import CANNOT, NOT, OWN, UNKNOWN, UNTESTED, check_all_tested, check_shown, estimate

from wanbench.methods.claims import ledger
from wanbench.pages import rolling_and_degraded, tail_latency
from wanbench.pages.rolling_and_degraded.claims import SHOWN, SOURCE


def audited(**measured):
    return rolling_and_degraded.claims.rolling_and_degraded(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tested(audited(), 50)


def test_both_pages_try_every_claim_of_the_source_once():
    pages = (
        set(tail_latency.claims.tail_latency().claims),
        set(rolling_and_degraded.claims.rolling_and_degraded().claims),
    )
    assert pages[0] | pages[1] == set(ledger.read_claims(SOURCE).claims) and not pages[0] & pages[1]


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("fifth", OWN, "start at 0"),
        ("neighbours", CANNOT, "a broker shares some of them with all other brokers"),
        ("tenant", CANNOT, "A trial here has one load"),
        ("twice", CANNOT, "rolls here end before that"),
        ("roll-clients", UNTESTED, "needs two rolls that differ only in their clients"),
        ("within-minutes", OWN, "about 4 minutes"),
        ("restored", UNTESTED, "15 minutes after"),
        ("roll-same", UNKNOWN, "900 partitions per topic, against 200 in 45 topics"),
        ("roll-version", OWN, ""),
        ("roll-partitions", OWN, ""),
        ("figure-13", CANNOT, "no numbers"),
        ("redundancy", CANNOT, "does not move offline replicas"),
        ("roll-every", CANNOT, "thousands of partitions"),
        ("restores", CANNOT, "the harness moves only leaders"),
        ("no-leadership", CANNOT, "the harness moves only leaders"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = audited().loc[claim]
    assert row.own == verdict and text in row.working


@pytest.mark.parametrize(
    "given, claim, by_value",
    [
        ("roll", "disruptive", {(9, 7, 11): OWN, (1.1, 1.0, 1.2): NOT, (1.6, 0.01, 194): UNKNOWN}),
        ("roll_clients", "roll-clients", {(0.5, 0.4, 0.6): OWN, (1, 0.95, 1.05): NOT, (1.2, 0.9, 1.6): UNKNOWN}),
        ("degraded_fenced", "leader-based", {(0, 0, 0.6): OWN, (1, 0.91, 1): NOT, (0.5, 0.2, 0.95): UNKNOWN}),
    ],
)
def test_a_rerun_gives_its_own_verdict(given, claim, by_value):
    for numbers, verdict in by_value.items():
        row = audited(**{given: estimate(*numbers)}).loc[claim]
        assert row.rerun == verdict and "Re-run:" in row.working, numbers


def test_what_is_not_comparable_is_shown_without_a_verdict():
    check_shown(audited, SHOWN)
