"""Clients of a fault episode on a cluster that asks for certificates, with the group protocol of KIP-848."""

import pytest

from wanbench.measure.experiments import KafkaFault
from wanbench.read.ingest import kafka_fault

pytestmark = [pytest.mark.lab, pytest.mark.kafka]


def test_clients_reach_a_cluster_with_mutual_tls(shared_lab, tmp_path):
    episode = KafkaFault(
        fault="none",
        client_settings={"group.protocol": "consumer"},
        topic_settings={"min.insync.replicas": 2},
        before_s=1.0,
        fault_s=1.0,
        quiet_s=0.0,
        after_s=120.0,
    )
    episode.run(shared_lab.host("eu"), shared_lab.host("us"), tmp_path, "t")
    found = kafka_fault.read(tmp_path / "kafka_fault/t.fault.json")
    keys = ["producer", "sequence"]
    acknowledged = found["fault_records"].dropna(subset="acknowledged_at_s").set_index(keys).index
    received = found["fault_receipts"].dropna(subset=keys).set_index(keys).index
    assert len(acknowledged) > 100 and not len(acknowledged.difference(received))
    assert found["faults"].group_protocol[0] == "consumer"
    stable = found["group_samples"].dropna(subset="member")
    assert set(stable.member) == {0, 1, 2} and set(stable.client_region) == {"eu", "us", "asia"}
