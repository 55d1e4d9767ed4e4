"""Trials measured on a lab with a cluster, from the plan to the rates; and a broker that dies in the middle of it."""

import json
import threading
import time
from dataclasses import replace

import pytest

from wanbench.errors import LabError
from wanbench.measure.campaign.execute import measure
from wanbench.measure.experiments import Iperf3, KafkaLoad, KafkaTrial, LinkSamples, Ping
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Trial, make_trials
from wanbench.methods.trials.rates import trial_rates
from wanbench.read.ingest import tabulate
from wanbench.runs import find

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FAST, SLOW = LinkSettings(2, rate_bps=5e7), LinkSettings(40, rate_bps=5e7)


SOON = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
"""A broker that is restarted need not wait for the end of its session."""
PING = Ping(count=20, interval_s=0.1)


def a_lab():
    """Not the cluster that tests share: measuring opens its lab and starts its cluster itself."""
    lab = LocalLab(["here", "there"], {("here", "there"): FAST, ("there", "here"): FAST})
    return KafkaLab(lab, ["there"], settings=SOON, profile="functional", heap_mb=256, metrics=False)


def background(duration_s):
    return Iperf3(duration_s=duration_s, udp=True, rate_bps=2e6, block_bytes=1000)


def planned(*trials):
    return make_trials(trials, from_region="here", to_region="there")


def kill_in_the_last_of_three_trials(lab, folder):
    while not (found := find(folder)) or len(found[0].attempts()) < 3:
        time.sleep(0.1)
    time.sleep(2)
    broker = lab.host("there")
    pid = broker.run(["cat", lab.cluster.pid_file(1)], timeout_s=10).stdout.decode().strip()
    broker.run(["kill", "-KILL", pid], timeout_s=10)


def test_each_trial_has_what_it_asks_for_and_no_more_until_a_broker_dies_which_ends_the_run(tmp_path):
    """A trial has brokers, links, gateways and clients as it asks, the next takes them back; what is measured stays."""
    lab = a_lab()
    load = KafkaLoad(
        partitions=2, payload="random", compression="zstd", client_rack="region", duration_s=4, warmup_s=1,
        batch_bytes=65_536, start_timeout_s=300, drain=False, jvm=QUICK,
    )  # fmt: skip
    own = KafkaTrial(
        load,
        background=background(6),
        ping=PING,
        client_regions=("here", "there"),
        alongside=(LinkSamples(which="all"),),
    )
    other = replace(own, broker_settings={"num.replica.fetchers": 2}, security="tls", gateway_bps=2e7, link=SLOW)
    dies = replace(own, load=replace(load, duration_s=60))
    killer = threading.Thread(target=kill_in_the_last_of_three_trials, args=(lab, tmp_path), daemon=True)
    killer.start()
    with pytest.raises(LabError, match="broker 1 on there/0 ended with status"):
        measure(
            planned(*(Trial(name, (each,)) for name, each in {"other": other, "own": own, "dies": dies}.items())),
            lab,
            data_folder=tmp_path,
            campaign="dies",
            retries=0,
        )
    killer.join()
    [run] = find(tmp_path)
    assert not run.finished and not lab.lab.is_open
    assert run.lab["cluster"]["kafka"].startswith("4.")
    assert run.tests().outcome.tolist() == ["done", "done", "failed"], run.tests().reason.tolist()
    assert {file["experiment"] for file in run.raw_files()} >= {
        "kafka_load",
        "ping",
        "iperf3",
        "links",
        "kafka_cluster",
    }
    tables = tabulate(run.folder, tmp_path / "tables")
    # A producer of the trial that failed may have printed nothing yet.
    unread = tables["unread"][~tables["unread"].path.str.contains("/0003-")]
    assert unread.empty, unread.to_dict("records")
    settings = tables["trials"].set_index("setting")
    assert settings.broker_settings["other"] == '{"num.replica.fetchers": "2"}'
    assert settings.security["other"] == "tls"
    samples = tables["link_samples"].merge(tables["trials"][["test_id", "setting"]])
    assert set(samples[samples.setting == "other"].rate_bps) == {2e7}
    assert set(samples[samples.setting == "own"].rate_bps) == {5e7}
    starts = {file["path"].rpartition("server")[2] for file in run.raw_files() if "broker-1.server" in file["path"]}
    assert starts == {".log.gz", "-2.log.gz", "-3.log.gz"}, "restarted for the first trial, and for the second"
    given = json.loads((run.folder / "kafka_cluster/session-1.broker-1.settings.json").read_text())["given"]
    assert "num.replica.fetchers" not in given and not any("ssl" in name for name in given)
    batches = tables["batches"]
    ratio = batches.records.sum() * load.record_bytes / batches.bytes.sum()
    assert 1.05 < ratio < 1.15, "what zstd makes of seven bits in eight"
    found = trial_rates(tables)
    assert set(found.left_out.setting) <= {"dies"}, found.left_out[["setting", "reason"]].to_string()
    rates = found.rates.set_index("setting")
    assert rates.counted_by.eq("the log").all() and (rates.batches_per_s > 1).all()
    echoes = tables["echoes"].merge(tables["trials"][["test_id", "setting"]]).groupby("setting").rtt_ms.min()
    assert echoes["own"] < SLOW.delay_ms, "the next trial has the lab's own link again"
    assert echoes["other"] >= 2 * SLOW.delay_ms, "a trial has the link that it asks for"
    assert rates.mean_rtt_ms["other"] >= echoes["other"]
