"""Source 001: each claim against its own numbers, and against made measurements whose verdict is known."""

import pytest
from tried_claims import CANNOT, NOT, OWN, UNKNOWN, WITHIN, corrected, estimate

from wanbench import claims as audits
from wanbench.claims import ledger
from wanbench.claims.geo_kafka import RULES
from wanbench.claims.geo_kafka_own import own_numbers, source_deployment
from wanbench.errors import ParameterError
from wanbench.stats.cost import cluster_cost


def tried(**measured):
    return audits.geo_kafka(**measured).table().set_index("claim")


def test_every_claim_is_tried_or_says_why_not():
    rows = tried()
    assert (rows.verdict != "not tried").all() and (rows.working != "").all() and len(rows) == 80


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("message-rate", NOT, "81 MB/s, 17.9 times less: what one of the 18 producers sends (80.6 MB/s)"),
        ("message-size", UNKNOWN, "would make 17.9 KB a message"),
        ("n-producers", OWN, "over the size and the claimed messages per second"),
        ("throughput", WITHIN, "taken as the total they make 0.0810 GB/s"),
        ("consumer-rate", OWN, "the total over the consumers"),
        ("consumer-total", WITHIN, "1.34 times what is produced"),
        ("buffers", OWN, "in Gbit/s it is 30.6 MB"),
        ("tunnel-rate", UNKNOWN, "sends 1.29 GB/s out of each region"),
        ("gateway", NOT, "36.8 %"),
        ("instances", OWN, ""),
        ("disks", OWN, ""),
        ("fixed", OWN, "without gateways"),
        ("crossings", NOT, "to a leader in another region 0.667 times"),
        ("variable", OWN, "at 2.67 times it is 139 USD"),
        ("per-hour", OWN, ""),
        ("per-message", NOT, "(3.77e-07 USD)"),
        ("per-message", NOT, "cost 3.3e-08 USD; only messages of 17.9 KB"),
        ("dwarfed", OWN, "27.5 times already"),
        ("dwarfed", OWN, "equal at 52,726 messages/s"),
        ("local-cost", OWN, "46.8 USD/h"),
        ("n-replicas", OWN, ""),
        ("balanced", OWN, ""),
        ("in-sync-during", OWN, "2 remain"),
        ("group-partitions", NOT, "81 partitions"),
        ("order", NOT, "within a partition, and the topic has 72"),
        ("rearranged", UNKNOWN, "6 consumers remain, with 12 partitions each"),
        ("linger", UNKNOWN, "117 ms"),
        ("tuning", UNKNOWN, "no figures"),
        ("double-encryption", CANNOT, "Submariner"),
        ("n-zookeepers", CANNOT, "KRaft"),
        ("reproducible", CANNOT, "OpenShift"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = tried().loc[claim]
    assert row.verdict == verdict and text in row.working


def test_the_numbers_recomputed():
    found = tried().recomputed
    expected = {
        "message-rate": 1.45e6, "n-producers": 17.901, "throughput": 1.458, "consumer-total": 1.944, "buffers": 245,
        "instances": 3.496248, "disks": 0.3, "fixed": 3.796248, "variable": 104.4, "per-hour": 108.196,
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
        ({"tunnel_rate": "0.4375"}, "buffers", NOT),
        ({"tunnel_rate": "0.4375"}, "gateway", UNKNOWN),
        ({"group_partitions": "8"}, "group-partitions", OWN),
        ({"test_partitions": "81"}, "group-partitions", OWN),
        ({"test_partitions": "70"}, "test-partitions", NOT),
        ({"consumer_total": "1.40"}, "slower", NOT),
        ({"consumer_total": "1.96"}, "consumer-total", NOT),
        ({"throughput": "0.5"}, "dwarfed", NOT),
    ],
)
def test_a_corrected_digit_corrects_the_verdict(values, claim, verdict):
    assert tried().verdict[claim] != verdict
    assert corrected(ledger.read_claims("001-geo-kafka"), own_numbers, values).verdict[claim] == verdict


@pytest.mark.parametrize(
    "given, claim, by_value",
    [
        ("tuned_over_default", "tuning", {(120, 90, 160): UNKNOWN, (12, 8, 20): UNKNOWN}),
        ("consumers_cost", "consumers-cost", {(5.2, 4, 6): OWN, (12, 3, 21): WITHIN, (30, 25, 35): NOT}),
        ("crossings", "crossings", {(2.7, 2.6, 2.8): NOT, (2.1, 1.9, 2.3): OWN}),
        ("producers", "nonlinear", {(0.4, 0.3, 0.5): OWN, (1.1, 1.05, 1.2): NOT, (1, 0.8, 1.2): UNKNOWN}),
        ("producers_gain", "producers", {(2, 1.5, 3): OWN, (0.5, 0.4, 0.6): OWN, (1, 0.8, 1.2): UNKNOWN}),
        ("partitions", "plateau", {(0.9, 0.8, 1.0): OWN, (1.3, 1.2, 1.4): NOT, (1, 0.8, 1.2): UNKNOWN}),
        ("rack", "local", {(0.01, 0.005, 0.015): OWN, (0.5, 0.4, 0.6): NOT, (0.02, 0.01, 0.03): UNKNOWN}),
        ("rack", "local-cost", {(0.01, 0.005, 0.015): OWN, (1.5, 1.4, 1.6): NOT}),
        ("gateway", "gateway", {(2, 1.5, 3): NOT, (0.9, 0.8, 0.95): NOT}),
        (
            "rto",
            "rto",
            {(4, 2, 6): OWN, (40, 30, 50): NOT, (9, 6, 12): UNKNOWN, (9, 6, float("inf")): UNKNOWN},
        ),
        ("service", "lights-on", {(1, 0.3, 1): OWN, (0, 0, 0.6): NOT, (0.5, 0.1, 0.9): UNKNOWN}),
        ("rpo", "rpo", {(0, 0, 3e-4): OWN, (2e-4, 1e-4, 3e-4): NOT, (float("nan"),) * 3: UNKNOWN}),
        ("rpo", "at-least-once", {(0, 0, 3e-4): OWN, (2, 1, 3): NOT}),
        ("replicas_back", "heals", {(1, 0.7, 1): OWN, (0.9, 0.6, 1): NOT}),
        ("leaders_back", "rebalances", {(1, 0.7, 1): OWN, (0.9, 0.6, 1): NOT, (float("nan"),) * 3: UNKNOWN}),
        ("healing", "autonomous", {(1, 0.7, 1): OWN, (0.9, 0.6, 1): NOT}),
        ("producer_errors", "transitory", {(12, 3, 20): OWN, (0, 0, 0.3): NOT}),
        ("producers_failed", "none-fails", {(0, 0, 0.3): OWN, (1, 0, 3): NOT}),
    ],
)
def test_a_rerun_gives_the_verdict(given, claim, by_value):
    for numbers, verdict in by_value.items():
        row = tried(**{given: estimate(*numbers)}).loc[claim]
        assert row.verdict == verdict, (numbers, row.working)
        assert "Re-run:" in row.working


def test_every_estimate_moves_its_own_claims_alone():
    alone = tried()
    for given, rules in RULES.items():
        rows = tried(**{given: estimate(0.5, 0.4, 0.6)})
        changed = rows.index[rows.working != alone.working]
        assert set(changed) == {rule.claim for rule in rules}, given


def test_compression():
    def codecs(other):
        return {"lz4": (estimate(0.5, 0.45, 0.55), estimate(1.2, 1.1, 1.3)), "zstd": other}

    traded = tried(compression=codecs((estimate(0.3, 0.25, 0.35), estimate(2, 1.9, 2.1))))
    assert traded.verdict[["lz4", "compression-bytes", "compression-processor"]].tolist() == [OWN] * 3
    better = tried(compression=codecs((estimate(0.3, 0.25, 0.35), estimate(1, 0.9, 1.05))))
    assert better.verdict["lz4"] == NOT and "Better in both: zstd" in better.working["lz4"]
    near = tried(compression=codecs((estimate(0.3, 0.25, 0.35), estimate(1.2, 1.0, 1.4))))
    assert near.verdict["lz4"] == UNKNOWN and "open: zstd" in near.working["lz4"]
    with pytest.raises(ParameterError, match="codec that compression needs is 'lz4'; allowed: 'zstd'"):
        tried(compression={"zstd": (estimate(1, 1, 1),) * 2})


def test_a_bare_number_is_no_estimate():
    with pytest.raises(
        ParameterError, match=r"rto is 4\.0; allowed: an Estimate, a Result that has one, or None"
    ):
        tried(rto=4.0)


def test_what_is_full_at_many_partitions():
    assert tried(partitions_limit="storage").verdict["storage"] == OWN
    assert tried(partitions_limit="processors").verdict["storage"] == NOT


def test_what_the_rerun_costs_is_no_verdict_on_the_sources_prices():
    audit = ledger.read_claims("001-geo-kafka")
    cost = cluster_cost(source_deployment(audit, messages_per_s=1000))
    rows, alone = tried(cost=cost), tried()
    assert (rows.verdict == alone.verdict).all()
    assert cost.sentence in rows.working["per-hour"] and cost.sentence in rows.working["per-message"]
