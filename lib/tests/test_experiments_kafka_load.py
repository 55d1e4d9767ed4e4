"""Loads of Kafka: settings, the arguments of the tools, and payloads."""

import json
import re
import zlib

import pyarrow as pa
import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.experiments.kafka_tools import consumer_arguments, producer_arguments
from wanbench.measure.experiments.load_settings import records

WHERE = {"bootstrap": "10.2.0.1:9092", "topic": "load-s-1", "client_file": None}


@pytest.mark.parametrize(
    "given, message",
    [
        ({"producers": 0}, "producers is 0; allowed: a whole number from 1 to 100"),
        ({"producers": 1.0}, "producers is 1.0; allowed: a whole number"),
        ({"linger_ms": -1}, "linger_ms is -1"),
        ({"linger_ms": 0.5}, "linger_ms is 0.5; allowed: whole milliseconds"),
        ({"target_records_per_s": float("nan")}, "target_records_per_s is nan"),
        ({"acks": 2}, "acks is '2'; allowed: '0', '1', 'all'"),
        ({"compression": "lzo"}, "compression is 'lzo'; allowed: 'none', 'gzip', 'snappy', 'lz4', 'zstd'"),
        ({"timestamps": "now"}, "timestamps is 'now'; allowed: 'LogAppendTime', 'CreateTime'"),
        ({"payload": "xml"}, "payload is 'xml'; allowed: 'letters', 'json', 'log', 'random'"),
        ({"idempotence": 1}, "idempotence is 1; allowed: True, False or None"),
        ({"drain": "yes"}, "drain is 'yes'"),
        ({"jvm": "-Xss1m"}, "jvm is '-Xss1m'; allowed: a list of flags"),
        ({"jvm": ["-Djavax.net.ssl.keyStorePassword=x"]}, "jvm has a flag that may contain a secret"),
        ({"jvm": None}, "jvm is None; allowed: a list of flags"),
        ({"topic_settings": "a=b"}, "topic_settings is a str; allowed: a mapping of names to values"),
        ({"records": 5}, "exactly one of duration_s (10.0) and records (5)"),
        ({"duration_s": None}, "exactly one of duration_s (None) and records (None)"),
        ({"warmup_records": 5}, "with duration_s give warmup_s"),
        ({"records": 5, "duration_s": None, "warmup_s": 1}, "with records give warmup_records"),
        ({"topics": 2}, "1 producers for 2 topics"),
        ({"consumers": 4}, "4 consumers per group and 3 partitions"),
        ({"consumers": 0}, "each group a consumer"),
        ({"producers": 100, "consumer_groups": 50, "consumers": 3}, "allowed: 200 processes"),
        ({"duration_s": 3600, "target_records_per_s": 1e5}, "would send 360,000,000,000 bytes; most_bytes allows 20,0"),
        ({"most_bytes": 10}, "most_bytes 10 is less than one record"),
        ({"idempotence": True, "acks": 1}, "idempotence needs acks 'all'"),
        ({"idempotence": True, "max_in_flight": 6}, "max_in_flight of at most 5"),
        ({"buffer_bytes": 65_536, "batch_bytes": 100_000}, "less than one batch of 100000"),
        ({"buffer_bytes": 1 << 28}, "heap_mb is 256; buffers of 268435456 bytes need at least 320"),
        ({"record_bytes": 1 << 20}, "max.request.size in producer_settings and max.message.bytes in topic_settings"),
        ({"payload": "json", "record_bytes": 100}, "JSON records have at least 150"),
        ({"producer_settings": {"acks": "1"}}, "'acks'; give acks"),
        ({"producer_settings": {"client.id": "c"}}, "the load sets it itself"),
        ({"producer_settings": {"transactional.id": "t"}}, "markers in the log would count as batches"),
        ({"consumer_settings": {"client.rack": "eu"}}, "'client.rack'; give client_rack"),
        ({"client_rack": ""}, "client_rack is ''; allowed: None, 'region' or the name of a rack"),
        ({"placement": ((1,),)}, "placement is ((1,),); allowed: 1 node ids for each of 3 partitions"),
        ({"placement": "apart"}, "placement is 'apart'; allowed: 1 node ids"),
        ({"producer_settings": {"sasl.jaas.config": "x"}}, "a secret"),
        ({"consumer_settings": {"ssl.key.password": "x"}}, "a secret"),
        ({"consumer_settings": {"fetch.min.bytes": "a\nb"}}, "values that are one line"),
        ({"topic_settings": {"--x": "1"}}, "names like"),
        ({"topic_settings": {"message.timestamp.type": "CreateTime"}}, "give timestamps"),
    ],
)
def test_parameters_that_cannot_be_are_refused(given, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        KafkaLoad(**given)


def test_a_flag_is_judged_by_its_name_alone():
    assert KafkaLoad(jvm=["-Djdk.net.hosts.file=/private/hosts"]).jvm == ("-Djdk.net.hosts.file=/private/hosts",)


@pytest.mark.parametrize("name", ["producer_settings", "consumer_settings", "topic_settings"])
def test_a_secret_that_is_refused_is_not_shown(name):
    login = {"sasl.jaas.config": 'Module required username="ada" password="hunter2";'}
    with pytest.raises(ParameterError, match=r"'sasl.jaas.config', a secret") as caught:
        KafkaLoad(**{name: login})
    assert "hunter2" not in str(caught.value)


def test_a_load_can_be_compared_and_hashed_however_its_settings_were_given():
    given = KafkaLoad(topic_settings={"b": True, "a": 1}, acks=1)
    assert given == KafkaLoad(topic_settings=[("a", "1"), ("b", "true")], acks="1")
    assert hash(given) == hash(KafkaLoad(topic_settings=(("a", 1), ("b", "true")), acks="1"))


def test_the_words_of_a_producer():
    load = KafkaLoad(
        producers=3, duration_s=10, warmup_s=2, target_records_per_s=50.5, acks=1, linger_ms=0, idempotence=False,
        compression="zstd", producer_settings={"send.buffer.bytes": -1}, reporting_interval_s=0.5,
    )  # fmt: skip
    assert producer_arguments(load, **WHERE | {"client_file": "/c"}, number=2, payload=None) == [
        "--bootstrap-server", "10.2.0.1:9092", "--topic", "load-s-1", "--reporting-interval", "500", "--print-metrics",
        "--command-config", "/c", "--num-records", "606", "--throughput", "50.5", "--record-size", "1000",
        "--warmup-records", "101", "--command-property", "client.id=load-producer-2", "acks=1", "batch.size=16384",
        "linger.ms=0", "compression.type=zstd", "buffer.memory=33554432", "max.in.flight.requests.per.connection=5",
        "enable.idempotence=false", "send.buffer.bytes=-1",
    ]  # fmt: skip


def test_flat_out_it_is_given_more_records_than_it_can_send_and_no_warmup():
    arguments = producer_arguments(KafkaLoad(producers=2, warmup_s=3), **WHERE, number=0, payload="/p")
    assert arguments[7:13] == ["--num-records", "10000000", "--throughput", "-1", "--payload-file", "/p"]
    assert "--warmup-records" not in arguments
    assert "enable.idempotence" not in " ".join(arguments)


def test_the_words_of_a_consumer():
    load = KafkaLoad(
        topics=2, producers=3, records=90, warmup_records=10, duration_s=None, print_metrics=False,
        consumer_settings={"receive.buffer.bytes": -1, "fetch.min.bytes": 9, "max.partition.fetch.bytes": 7},
    )  # fmt: skip
    assert consumer_arguments(load, **WHERE, group="g", number=4) == [
        "--bootstrap-server", "10.2.0.1:9092", "--topic", "load-s-1", "--reporting-interval", "1000", "--group", "g",
        "--num-records", "100", "--timeout", "10000", "--show-detailed-stats", "--socket-buffer-size=-1",
        "--fetch-size=7", "--command-property", "client.id=load-consumer-4", "--command-property", "fetch.min.bytes=9",
    ]  # fmt: skip
    assert [load.records_of_topic(n) for n in range(2)] == [200, 100]


@pytest.mark.parametrize(
    "rack, arguments", [(None, []), ("region", ["client.rack=eu"]), ("rack-7", ["client.rack=rack-7"])]
)
def test_consumers_name_their_rack_when_asked(rack, arguments):
    found = consumer_arguments(KafkaLoad(client_rack=rack), **WHERE, group="g", number=0, region="eu")
    assert [word for word in found if word.startswith("client.rack")] == arguments


def test_what_is_expected():
    assert KafkaLoad(producers=3, records=100, duration_s=None).expected_bytes(80) == 300_000
    assert KafkaLoad(duration_s=10, warmup_s=2).expected_bytes(80) is None
    assert KafkaLoad(duration_s=10, warmup_s=2).expected_bytes(80, 8e6) == 12e6
    assert KafkaLoad(duration_s=10, most_bytes=5e6).expected_bytes(80, 8e6) == 5e6
    slow, fast = (KafkaLoad(records=10**6, duration_s=None).expected_s(rtt_ms) for rtt_ms in (200, 20))
    assert slow - fast == pytest.approx(1e9 / (3 * 16_384 * 5) * 0.18)
    assert KafkaLoad(duration_s=30).expected_s(20) - KafkaLoad(duration_s=10).expected_s(20) == pytest.approx(20)
    assert KafkaLoad(drain=False).expected_s(20) == pytest.approx(KafkaLoad().expected_s(20) - 10)


@pytest.mark.parametrize("size", [150, 100_000])
def test_json_records_are_json_of_their_size(size):
    made = records("json", size, seed=3)
    lines = made.splitlines()
    assert {len(line) for line in lines} == {size}
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) >= 80
    assert len(made) <= 8 << 20


@pytest.mark.parametrize("payload", ["random", "json", "log"])
def test_records_are_the_same_again_and_others_with_another_seed(payload):
    assert records(payload, 150, seed=1) == records(payload, 150, seed=1) != records(payload, 150, seed=2)


@pytest.mark.parametrize("codec, low, high", [("lz4", 0.99, 1.01), ("snappy", 0.99, 1.01), ("zstd", 1.10, 1.15)])
def test_a_batch_of_random_records_hardly_compresses(codec, low, high):
    batch = records("random", 1000, seed=1)[:131_072]
    assert low < len(batch) / len(pa.compress(batch, codec=codec, asbytes=True)) < high


def test_each_payload_compresses_as_far_as_its_kind_says():
    def ratio(payload):
        made = records(payload, 1000, seed=1)
        lines = made.decode().split("\n")[:-1]
        assert {len(line.encode()) for line in lines} == {1000} and len(set(lines)) == len(lines)
        return len(made) / len(zlib.compress(made))

    random, json_like, log = map(ratio, ("random", "json", "log"))
    assert 1.10 < random < 1.15, "7 of 8 bits of each byte"
    assert min(json_like, log) > 3
