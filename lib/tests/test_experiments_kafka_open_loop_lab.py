"""Open-loop loads on links of known delay and rate: what they find there."""

from itertools import permutations

import pytest

from wanbench.measure.experiments import BrokerMetrics, HostMetrics, KafkaOpenLoop, KafkaTrial, LinkSamples
from wanbench.measure.kafka import Cluster
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.pages.tail_latency.latencies import of_open_loop
from wanbench.read.ingest import kafka_open_loop

pytestmark = [pytest.mark.lab, pytest.mark.kafka]


@pytest.fixture
def lab(shared_lab):
    return shared_lab


@pytest.fixture(scope="module")
def narrow_lab():
    """A lab of its own, with one broker behind links of 4 Mbit/s, which has a second tier of storage."""
    links = {pair: LinkSettings(5, rate_bps=4e6) for pair in permutations(("us", "eu"), 2)}
    options = {"profile": "functional", "heap_mb": 256, "metrics": False, "start_timeout_s": 300, "tiered": True}
    with LocalLab(["us", "eu"], links) as lab, Cluster(lab, ["eu"], **options):
        yield lab


def tables(lab, folder, load, source="us", target="eu"):
    files = load.run(lab.host(source), lab.host(target), folder, "0001.1")
    assert all((folder / file.path).is_file() for file in files)
    return kafka_open_loop.read(folder / "kafka_open_loop/0001.1.load.json")


def test_the_delay_of_the_links_shows_in_both_latencies(lab, tmp_path):
    """
    Every pair is 10 ms apart one way. A record goes from us to its leader, to a follower and, from the leader, to eu:
    with leaders everywhere, the shortest way end to end is 10 ms, and publishing takes a round trip to a follower.
    """
    load = KafkaOpenLoop(300, record_bytes=500, linger_ms=2, duration_s=2, warmup_s=1)
    found = tables(lab, tmp_path, load)
    [row] = found["open_loop_loads"].to_dict("records")
    assert row["n_intended"] == row["n_sent"] == row["n_acknowledged"] == 900
    assert (row["n_received_per_group_min"], row["n_duplicates"], row["n_failed"]) == (900, 0, 0)
    assert (row["clock_error_ms"], row["clock_method"]) == (0, "one machine, one clock")
    histograms = found["open_loop_histograms"]
    assert len(histograms) == 4 * 3 and (histograms.n == 300).all() and not histograms.n_lost.any()
    publish, received = (of_open_loop(histograms, what=what) for what in ("publish", "end to end"))
    assert publish.n == 2 * 300 and received.n == 3 * 2 * 300
    assert publish.values_ms[0] >= 20 and received.values_ms[0] >= 30
    assert received.quantile(0.5) > publish.quantile(0.01)


def test_beyond_the_rate_of_a_link_the_backlog_grows_and_the_generator_is_on_time(narrow_lab, tmp_path):
    """200 records/s of 10 kB are 16 Mbit/s, over a link of 4 Mbit/s."""
    load = KafkaOpenLoop(
        200, record_bytes=10_000, replication=1, groups=1, duration_s=4, warmup_s=1, drain_s=2, batch_bytes=100_000,
        producer_settings={"queue.buffering.max.kbytes": 2_000},
    )  # fmt: skip
    found = tables(narrow_lab, tmp_path, load)
    [row] = found["open_loop_loads"].to_dict("records")
    assert row["n_intended"] == 1_000 > row["n_sent"] > row["n_acknowledged"]
    assert row["backlog_records"] > 500
    assert row["blocked_s"] > 1 and row["acknowledged_records_per_s"] * 80_000 < 4e6
    tail = of_open_loop(found["open_loop_histograms"])
    assert tail.n == 800 and tail.n_lost > 400 and tail.quantile(0.9) == float("inf")


def test_a_trial_has_it_as_its_load_with_other_measurements_beside(lab, tmp_path):
    beside = (HostMetrics(), LinkSamples(), BrokerMetrics())
    settings = {"consumer_settings": {"group.protocol": "consumer"}}  # groups of KIP-848
    settings |= {"idempotence": True, "transaction_ms": 500, "consumers": 2, "joins_at_s": 1.5}
    load = KafkaOpenLoop(100, record_bytes=200, groups=3, topics=2, duration_s=2, warmup_s=1, **settings)
    trial = KafkaTrial(load, alongside=beside, client_regions=("eu", "us", "asia"))
    files = trial.run(lab.host("us"), lab.host("eu"), tmp_path, "0001.1")
    kinds = {file.path.partition("/")[0] for file in files}
    assert kinds == {"kafka_open_loop", "host_metrics", "links", "broker_metrics", "processor_use"}
    found = kafka_open_loop.read(tmp_path / "kafka_open_loop/0001.1.load.json")
    [row] = found["open_loop_loads"].to_dict("records")
    assert row["n_received_per_group_min"] == row["n_acknowledged"] == row["n_intended"] == 300
    for what in ("publish", "end to end"):  # a record waits up to 500 ms for the commit, on average half of that
        assert of_open_loop(found["open_loop_histograms"], what=what).quantile(0.5) > 150
    asked = lab.host("us").cluster.ask(lab.host("us"), "topics")
    assert not [topic["name"] for topic in asked if topic["name"].startswith("open-loop-")]


def test_a_share_group_of_more_members_than_partitions_receives_every_record(lab, tmp_path):
    load = KafkaOpenLoop(
        200, record_bytes=200, partitions=1, groups=1, consumers=2, share_groups=True, duration_s=1, warmup_s=0.5
    )
    [row] = tables(lab, tmp_path, load)["open_loop_loads"].to_dict("records")
    assert row["n_received_per_group_min"] == row["n_intended"] == 300


def test_records_in_the_second_tier_are_read_again(narrow_lab, tmp_path):
    settings = {"segment.bytes": 1 << 20, "remote.storage.enable": True, "local.retention.bytes": 1 << 20}
    load = KafkaOpenLoop(
        1_000, partitions=1, replication=1, groups=1, duration_s=4, warmup_s=1, topic_settings=settings, rereads=True
    )
    [row] = tables(narrow_lab, tmp_path, load, source="eu")["open_loop_loads"].to_dict("records")
    assert row["n_received_per_group_min"] == 5_000 and row["reread_records_per_s"] > 0
    log = narrow_lab.host("eu").cluster.log(1).decode()
    copied = [line for line in log.splitlines() if "Copied " in line and "to remote storage" in line]
    assert len(copied) >= 3 and "due to local log retention size" in log
