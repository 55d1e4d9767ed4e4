"""Table trials: the settings of a plan, column by column; plans of earlier versions have fewer."""

import json
from dataclasses import replace

import pytest
from run_folders import claimed

from wanbench.errors import RawDataError
from wanbench.folders import samples_folder
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.measure.plan import Trial, make_trials
from wanbench.pages.tail_latency.design.openmessaging import OpenMessaging
from wanbench.read.ingest.trials import trials
from wanbench.runs import find

TUNED = KafkaTrial(
    KafkaLoad(
        replication=3,
        topic_settings={"min.insync.replicas": 2},
        payload="random",
        client_rack="region",
        max_in_flight=4,
        producer_settings={"send.buffer.bytes": 875_000, "receive.buffer.bytes": 1},
        consumer_settings={"receive.buffer.bytes": -1},
    ),
    client_regions=("a", "b", "c"),
    broker_settings={"num.replica.fetchers": 2, "min.insync.replicas": 1, "background.threads": 4},
    security="mtls",
    gateway_bps=2e7,
    system="tuned",
)
COLUMNS = [
    "payload", "max_in_flight", "min_insync", "client_rack", "client_regions", "client_send_buffer_bytes",
    "client_receive_buffer_bytes", "broker_settings", "security", "gateway_bps",
    "system", "cluster",
]  # fmt: skip


def table(folder, *experiments):
    planned = [Trial("x", (each,), 1) for each in experiments]
    plan = json.loads(json.dumps(make_trials(planned, from_region="a", to_region="b").as_dict()))
    with claimed(folder, plan=plan) as writer:
        writer.start({"kind": "scripted"})
        return trials(writer.finish())["trials"]


def test_each_setting_has_its_column(tmp_path):
    found = table(tmp_path, TUNED, KafkaTrial(KafkaLoad(), cluster="far"), replace(TUNED, load=KafkaLoad()))
    tuned, plain, by_brokers = found[COLUMNS].astype(object).where(found[COLUMNS].notna(), None).to_numpy().tolist()
    brokers = '{"background.threads": "4", "min.insync.replicas": "1", "num.replica.fetchers": "2"}'
    assert tuned == ["random", 4, 2, "region", 3, 875_000, -1, brokers, "mtls", 2e7, "tuned", None]
    assert plain == ["letters", 5, None, None, None, None, None, "", None, None, None, "far"]
    assert by_brokers[2] == 1, "a topic without the setting has that of the brokers"


def test_a_number_that_is_none_is_named(tmp_path):
    load = KafkaLoad(producer_settings={"send.buffer.bytes": "much"})
    with pytest.raises(RawDataError, match="a plan of trials"):
        table(tmp_path, KafkaTrial(load))


def test_recordings_of_earlier_versions_still_read():
    (run,) = find(samples_folder(), "private-vs-internet")
    found = trials(run)["trials"]
    assert len(found) > 10 and set(found.broker_settings) == {""}
    assert found[["security", "gateway_bps", "client_regions"]].isna().all(axis=None)
    assert set(found.payload) == {"letters"}


def test_a_workload_of_others_has_its_sizes_in_the_columns(tmp_path):
    workload = {
        "topics": 2, "partitionsPerTopic": 3, "messageSize": 100, "subscriptionsPerTopic": 4, "producersPerTopic": 5,
        "consumerPerSubscription": 6, "producerRate": 50, "testDurationMinutes": 2, "payloadFile": "a",
    }  # fmt: skip
    load = OpenMessaging("/x", workload, {"replicationFactor": 2})
    [row] = table(tmp_path, KafkaTrial(load)).to_dict("records")
    names = ("topics", "partitions", "replication", "producers", "consumer_groups", "consumers", "record_bytes")
    assert [row[name] for name in names] == [2, 3, 2, 10, 4, 6, 100]
    assert (row["target_records_per_s"], row["duration_s"]) == (5.0, 120.0)
