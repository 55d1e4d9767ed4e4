"""Source 001: each claim against its own numbers, and against made measurements whose verdict is known."""

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

from wanbench.methods.claims import ledger
from wanbench.methods.cost import cluster_cost
from wanbench.pages import geo_kafka
from wanbench.pages.geo_kafka.claims import SHOWN, own_numbers, source_deployment


def audited(**measured):
    return geo_kafka.claims.geo_kafka(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    check_all_tested(audited(), 86)


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        (
            "message-rate",
            NOT,
            "81 MB/s, which is less by a factor of 17.9. Each of the 18 producers sends about as many bytes (80.6 "
            "MB/s)",
        ),
        ("message-size", UNTESTED, "would mean 17.9 KB per message"),
        ("n-producers", OWN, "divided by the size of a message and by the claimed messages per second"),
        ("throughput", WITHIN, "If the claimed rate were that of all producers, the cluster would reach 0.0810 GB/s"),
        ("consumer-rate", OWN, "the total divided by the number of consumers"),
        ("consumer-total", WITHIN, "1.34 times what is produced"),
        ("buffers", OWN, "in Gbit/s, the product is 30.6 MB"),
        ("tunnel-rate", UNKNOWN, "sends 1.29 GB/s out of each region"),
        ("gateway", NOT, "36.8 %"),
        ("instances", OWN, ""),
        ("disks", OWN, ""),
        ("fixed", OWN, "without gateways"),
        ("crossings", NOT, "to a leader in another region 0.667 times"),
        (
            "variable",
            UNKNOWN,
            "104 USD/h if a message crosses between regions 2 times, as the source states, and 139 USD/h if",
        ),
        ("per-hour", UNKNOWN, "143 USD/h if it crosses 2.67 times"),
        ("slower", UNKNOWN, "only while they catch up"),
        ("per-region", OWN, ""),
        ("min-in-sync", UNTESTED, "setting"),
        ("submariner", UNTESTED, "setting"),
        ("none-fails", CANNOT, "time-out of two minutes"),
        ("per-message", NOT, "(3.77e-07 USD)"),
        ("per-message", NOT, "cost 3.3e-08 USD; only messages of 17.9 KB"),
        ("dwarfed", OWN, "at the full rate it is already 27.5 times the fixed cost"),
        ("dwarfed", OWN, "equal at 52,726 messages/s"),
        ("local-cost", OWN, "46.8 USD/h"),
        ("n-replicas", OWN, ""),
        ("balanced", OWN, ""),
        ("in-sync-during", OWN, "2 remain"),
        ("group-partitions", NOT, "81 partitions"),
        ("order", NOT, "within a partition, and the topic has 72"),
        ("rearranged", UNKNOWN, "6 consumers remain, with 12 partitions each"),
        ("linger", UNKNOWN, "117 ms"),
        ("tuning", CANNOT, "where it started"),
        ("taxing", UNTESTED, "no figures"),
        ("double-encryption", CANNOT, "Submariner"),
        ("n-zookeepers", CANNOT, "KRaft"),
        ("reproducible", CANNOT, "OpenShift"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = audited().loc[claim]
    assert row.own == verdict and text in row.working


def test_the_numbers_recomputed():
    found = audited().recomputed
    expected = {
        "message-rate": 1.45e6, "n-producers": 17.901, "throughput": 1.458, "consumer-total": 1.944, "buffers": 245,
        "instances": 3.496248, "disks": 0.3, "fixed": 3.796248,
        "per-message": 110 / (1.45e6 * 3600), "crossings": 8 / 3, "group-partitions": 8,
    }  # fmt: skip
    assert found[list(expected)].to_dict() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "values, claim, verdict",
    [
        ({"message_rate": "1.45e6"}, "message-rate", OWN),
        ({"message_rate": "1.45e6"}, "throughput", NOT),
        ({"message_size": "17.9"}, "message-rate", OWN),
        ({"per_message": "0.0000000211"}, "per-message", OWN),
        ({"instances": "3.496249"}, "instances", NOT),
        ({"n_brokers": "8"}, "instances", NOT),
        ({"disk_price": "0.050"}, "disks", NOT),
        ({"variable": "140"}, "variable", NOT),
        ({"region_price": "0.02"}, "per-hour", NOT),
        ({"crossings": "2.67"}, "crossings", OWN),
        ({"crossings": "2.67", "per_hour": "1.4e2"}, "per-hour", OWN),
        ({"crossings": "2.67", "variable": "139"}, "variable", OWN),
        ({"tunnel_rate": "0.4375"}, "buffers", NOT),
        ({"tunnel_rate": "1.4"}, "gateway", OWN),
        ({"group_partitions": "8"}, "group-partitions", OWN),
        ({"test_partitions": "81"}, "group-partitions", OWN),
        ({"test_partitions": "70"}, "test-partitions", NOT),
        ({"consumer_total": "1.40"}, "slower", NOT),
        ({"consumer_total": "1.96"}, "consumer-total", NOT),
        ({"throughput": "0.5"}, "dwarfed", NOT),
    ],
)
def test_a_corrected_digit_corrects_the_verdict(values, claim, verdict):
    assert audited().own[claim] != verdict
    assert corrected(ledger.read_claims("001-geo-kafka"), own_numbers, values).own[claim] == verdict


@pytest.mark.parametrize(
    "given, claim, by_value",
    [
        ("producers", "nonlinear", {(0.4, 0.3, 0.5): OWN, (1, 0.95, 1.05): NOT, (1, 0.8, 1.2): UNKNOWN}),
        ("rack", "local", {(0.01, 0.005, 0.015): OWN, (0.5, 0.4, 0.6): NOT, (0.02, 0.01, 0.03): UNKNOWN}),
        ("rto", "rto", {(4, 2, 6): OWN, (40, 30, 50): NOT, (9, 6, float("inf")): UNKNOWN}),
        ("service", "lights-on", {(1, 0.3, 1): UNKNOWN, (1, 0.91, 1): OWN, (0, 0, 0.6): NOT}),
        ("rpo", "rpo", {(0, 0, 3e-4): OWN, (2e-4, 1e-4, 3e-4): NOT, (0, 0, 0.6): UNKNOWN}),
        ("producer_errors", "transitory", {(1, 0.3, 1): OWN, (0, 0, 0.05): NOT, (0, 0, 0.6): UNKNOWN}),
    ],
)
def test_a_rerun_gives_its_own_verdict(given, claim, by_value):
    for numbers, verdict in by_value.items():
        rows = audited(**{given: estimate(*numbers)})
        assert rows.rerun[claim] == verdict and "Re-run:" in rows.working[claim], numbers
        assert rows.own[claim] == audited().own[claim]


def test_what_is_not_comparable_is_shown_without_a_verdict():
    check_shown(audited, SHOWN)


def test_what_the_rerun_costs_is_no_verdict_on_the_sources_prices():
    audit = ledger.read_claims("001-geo-kafka")
    cost = cluster_cost(source_deployment(audit, messages_per_s=1000))
    rows, alone = audited(cost=cost), audited()
    assert (rows[["own", "rerun"]] == alone[["own", "rerun"]]).all().all()
    assert cost.sentence in rows.working["per-hour"] and cost.sentence in rows.working["per-message"]
