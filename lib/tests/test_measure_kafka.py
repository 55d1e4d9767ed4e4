"""Trials measured on a lab with a cluster, from the plan to the rates; and a broker that dies in the middle of it."""

import threading
import time
from dataclasses import replace

import pytest

from wanbench.campaign.execute import measure
from wanbench.errors import LabError
from wanbench.experiments import Iperf3, KafkaLoad, KafkaTrial, LinkSamples, Ping
from wanbench.ingest import tabulate
from wanbench.kafka.lab import KafkaLab
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings
from wanbench.plan import Trial, make_trials
from wanbench.runs import find
from wanbench.stats.trials.rates import trial_rates

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FAST, SLOW = LinkSettings(2, rate_bps=5e7), LinkSettings(40, rate_bps=5e7)


def a_lab():
    """Not the cluster that tests share: measuring opens its lab and starts its cluster itself."""
    lab = LocalLab(["here", "there"], {("here", "there"): FAST, ("there", "here"): FAST})
    return KafkaLab(lab, ["there"], profile="functional", heap_mb=256)


def trial(name, link, duration_s=4.0):
    load = KafkaLoad(
        partitions=1, consumer_groups=0, batch_bytes=8192, duration_s=duration_s, warmup_s=1, jvm=QUICK
    )
    background = Iperf3(duration_s=6, udp=True, rate_bps=2e6, block_bytes=1000)
    ping = Ping(count=20, interval_s=0.1)
    return Trial(
        name, (KafkaTrial(load, link=link, background=background, ping=ping, beside=(LinkSamples(),)),)
    )


def planned(*trials):
    return make_trials(trials, from_region="here", to_region="there")


@pytest.mark.timing
def test_two_settings_from_plan_to_rates(tmp_path):
    plan = planned(trial("near", FAST), trial("far", SLOW))
    run = measure(plan, a_lab(), data_folder=tmp_path, campaign="two", progress=False)
    assert run.finished and run.tests().outcome.tolist() == ["done", "done"]
    run.verify()
    kept = {file["path"] for file in run.raw_files()}
    assert any(path.startswith("kafka_cluster/session-1.broker-1") for path in kept)
    assert run.lab["cluster"]["kafka"].startswith("4.")
    tables = tabulate(run.folder, tmp_path / "tables")
    assert tables["unread"].empty and set(tables["trials"].setting) == {"near", "far"}
    found = trial_rates(tables)
    assert found.left_out.empty, found.left_out.to_dict("records")
    rates = found.rates.set_index("setting")
    assert rates.counted_by.eq("the log").all()
    assert rates.mean_rtt_ms["near"] < 30 < 75 < rates.mean_rtt_ms["far"]
    assert rates.batches_per_s["near"] > 2 * rates.batches_per_s["far"] > 20
    window_limited = 5 / (rates.mean_rtt_ms["far"] / 1000)
    assert 0.4 * window_limited < rates.batches_per_s["far"] < 1.1 * window_limited


def test_a_broker_that_dies_ends_the_run_with_its_words_and_keeps_what_was_measured(tmp_path):
    lab = a_lab()

    def kill_in_the_second_trial():
        while not (found := find(tmp_path)) or len(found[0].attempts()) < 2:
            time.sleep(0.1)
        time.sleep(2)
        broker = lab.host("there")
        pid = broker.run(["cat", f"{broker.scratch}/kafka-1/pid"], timeout_s=10).stdout.decode().strip()
        broker.run(["kill", "-KILL", pid], timeout_s=10)

    killer = threading.Thread(target=kill_in_the_second_trial, daemon=True)
    killer.start()
    plan = planned(trial("near", FAST), trial("far", SLOW, duration_s=20.0))
    with pytest.raises(LabError, match="broker 1"):
        measure(plan, lab, data_folder=tmp_path, campaign="dies", progress=False, retries=0)
    killer.join()
    [run] = find(tmp_path)
    assert not run.finished and not lab.lab.is_open
    tests = run.tests()
    assert tests.outcome.tolist() == ["done", "failed"]
    assert {file["experiment"] for file in run.raw_files()} >= {
        "kafka_load",
        "ping",
        "iperf3",
        "links",
        "kafka_cluster",
    }


def test_brokers_gateways_and_clients_are_as_each_trial_asks_and_the_next_takes_it_back(tmp_path):
    links = dict.fromkeys((("here", "there"), ("there", "here")), FAST)
    lab = KafkaLab(LocalLab(["here", "there"], links), ["here", "there"], profile="functional", heap_mb=256)
    load = KafkaLoad(
        replication=2, partitions=2, payload="random", compression="zstd", client_rack="region", duration_s=2,
        batch_bytes=65_536, start_timeout_s=300, drain=False, jvm=QUICK, topic_settings={"min.insync.replicas": 2},
    )  # fmt: skip
    spread = KafkaTrial(load, client_regions=("here", "there"), beside=(LinkSamples(which="all"),))
    other = replace(spread, broker_settings={"num.replica.fetchers": 2}, security="tls", gateway_bps=2e7)
    plan = planned(Trial("own", (spread,)), Trial("other", (other,)), Trial("own again", (spread,)))
    run = measure(plan, lab, data_folder=tmp_path, campaign="spread", progress=False, retries=0)
    assert run.finished and run.tests().outcome.tolist() == ["done"] * 3, run.tests().reason.tolist()
    tables = tabulate(run.folder, tmp_path / "tables")
    assert tables["unread"].empty
    settings = tables["trials"].set_index("setting")
    assert (
        settings.broker_settings["other"] == '{"num.replica.fetchers": "2"}'
        and settings.security["other"] == "tls"
    )
    samples = tables["link_samples"].merge(tables["trials"][["test_id", "setting"]])
    assert set(samples[samples.setting == "other"].rate_bps) == {2e7}
    assert set(samples[samples.setting != "other"].rate_bps) == {5e7}
    starts = {
        file["path"].rpartition("server")[2] for file in run.raw_files() if "broker-1.server" in file["path"]
    }
    assert starts == {".log.gz", "-2.log.gz", "-3.log.gz"}, (
        "restarted for the second trial, and for the third"
    )
    batches = tables["batches"]
    ratio = batches.records.sum() * load.record_bytes / batches.bytes.sum()
    assert 1.05 < ratio < 1.15, "what zstd makes of seven bits in eight"
