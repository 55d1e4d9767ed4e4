"""Source 003, second half: rolls and degraded brokers, on its own numbers and on made measurements."""

import pytest
from tried_claims import CANNOT, NOT, OWN, UNKNOWN, check_all_tried, estimate

from wanbench import claims as audits
from wanbench.claims import ledger
from wanbench.claims.rolling_and_degraded import PAGE, RULES, SOURCE
from wanbench.errors import ParameterError


def tried(**measured):
    return audits.rolling_and_degraded(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tried(tried(), SOURCE, PAGE, 50)


def test_both_pages_try_every_claim_of_the_source_once():
    pages = set(audits.tail_latency().claims), set(audits.rolling_and_degraded().claims)
    assert pages[0] | pages[1] == set(ledger.read_claims(SOURCE).claims) and not pages[0] & pages[1]


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("fifth", OWN, "start at 0"),
        ("neighbours", CANNOT, "the broker numbered 4 shares some with all 7 others"),
        ("tenant", CANNOT, "A trial here has one load"),
        ("twice", CANNOT, "rolls here end before that"),
        ("roll-clients", UNKNOWN, "needs two rolls that differ in their clients alone"),
        ("within-minutes", OWN, "about 4 minutes"),
        ("restored", UNKNOWN, "15 minutes after"),
        ("roll-same", UNKNOWN, "900 partitions per topic, against 200 in 45 topics"),
        ("roll-version", OWN, ""),
        ("roll-partitions", OWN, ""),
        ("figure-13", CANNOT, "no numbers"),
        ("redundancy", CANNOT, "does not move offline replicas"),
        ("roll-every", UNKNOWN, "no figures"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = tried().loc[claim]
    assert row.verdict == verdict and text in row.working


@pytest.mark.parametrize(
    "given, claim, by_value",
    [
        ("roll", "disruptive", {(9, 7, 11): OWN, (1.1, 1.0, 1.2): NOT, (1.5, 1, 2): UNKNOWN}),
        ("roll_errors", "rediscover", {(1, 0.6, 1): OWN, (0, 0, 0.4): NOT}),
        ("roll_spikes", "roll-every", {(1, 0.6, 1): OWN, (0.8, 0.5, 1): NOT}),
        ("roll_clients", "roll-clients", {(0.5, 0.4, 0.6): OWN, (1.2, 0.9, 1.6): UNKNOWN}),
        ("roll_worst_s", "roll-seconds", {(4, 3, 5): OWN, (0.5, 0.4, 0.6): NOT, (2, 1, 3): UNKNOWN}),
        ("degraded_fenced", "leader-based", {(0, 0, 0.4): OWN, (0.5, 0.2, 0.8): NOT}),
        ("degraded_found", "statistical", {(1, 0.6, 1): OWN, (0, 0, 0.4): NOT, (0.5, 0.2, 0.8): UNKNOWN}),
        ("degraded_found", "detects", {(1, 0.95, 1): OWN, (1, 0.54, 1): UNKNOWN, (0.5, 0.2, 0.8): NOT}),
        ("demotion_rest", "demotion", {(1, 0.9, 1.1): OWN, (3, 2, 4): NOT, (1.5, 1, 2): UNKNOWN}),
        (
            "demotion_min",
            "within-minutes",
            {(2, 1, 3): OWN, (20, 15, 30): NOT, (9, 6, float("inf")): OWN},
        ),
    ],
)
def test_a_rerun_gives_the_verdict(given, claim, by_value):
    for numbers, verdict in by_value.items():
        row = tried(**{given: estimate(*numbers)}).loc[claim]
        assert row.verdict == verdict and "Re-run:" in row.working, numbers


def test_every_estimate_moves_its_own_claims_alone():
    alone = tried()
    for given, rules in RULES.items():
        rows = tried(**{given: estimate(0.5, 0.4, 0.6)})
        assert set(rows.index[rows.working != alone.working]) == {rule.claim for rule in rules}, given


def test_what_is_no_estimate_is_refused():
    with pytest.raises(ParameterError, match=r"roll is True; allowed: an Estimate, a Result"):
        tried(roll=True)
