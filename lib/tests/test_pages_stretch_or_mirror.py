"""What a stretched cluster and a mirrored pair lose: accounts of records written down here, and a real episode."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from wanbench.measure.kafka import KafkaLab
from wanbench.measure.labs import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.pages.stretch_or_mirror.design import MirrorFault
from wanbench.pages.stretch_or_mirror.gaps import LATE_S, named
from wanbench.pages.stretch_or_mirror.losses import AT_FAILOVER, FIRST, SECOND, STANDBY, RegionLosses, account, losses
from wanbench.read.ingest import kafka_fault

ACKNOWLEDGED = pd.DataFrame(
    {
        "producer": 0,
        "sequence": range(6),
        "partition": 0,
        "offset": range(6),
        "acknowledged_at_s": [1.0, 2, 3, 4, 5, np.nan],
    }
)


def about(**more):
    times = {"fault_at_s": 2.5, "heal_at_s": 8.0, "failover_at_s": np.nan, "failback_at_s": np.nan}
    return pd.Series({"fault": "cut", "gap": None} | times | more)


def log(**sequences):
    """Logs by name; each lists the sequence numbers in the order of offsets, None for what was deleted."""
    numbers = {"first": FIRST, "failover": AT_FAILOVER, "second": SECOND}
    rows = [
        {"log": numbers[name], "partition": 0, "offset": offset, "producer": 0, "sequence": sequence, "damaged": False}
        for name, each in sequences.items()
        for offset, sequence in enumerate(each)
        if sequence is not None
    ]
    return pd.DataFrame(rows)


def received(**sequences):
    """Receipts, one a second from the time 1; the group's first consumer, and the one that takes over."""
    consumers = {"first": 0, "standby": STANDBY}
    rows = [
        {"consumer": consumers[name], "producer": 0, "sequence": sequence, "received_at_s": 1.0 + sequence}
        for name, each in sequences.items()
        for sequence in each
    ]
    return pd.DataFrame(rows, columns=["consumer", "producer", "sequence", "received_at_s"])


def counts(what, logs, receipts=None):
    """What is counted of an episode, without what is 0."""
    made = account(what, ACKNOWLEDGED, logs, received() if receipts is None else receipts)
    return {name: value for name, value in made.items() if value}


def test_a_stretched_cluster_misses_what_is_not_in_its_log():
    assert counts(about(), log(first=[0, 1, 3, 4, 4])) == {"acknowledged": 5, "missing": 1, "gone": 1, "repeated": 1}


def test_a_pair_misses_at_the_failover_what_comes_back_later():
    logs = log(first=[0, 1, 2, 3, 4], failover=[0], second=[0, 1, 2, 3, 4])
    made = counts(about(failover_at_s=4.5), logs, received(first=[0]))
    assert made == {"acknowledged": 4, "missing": 3, "after_fault": 2}


def test_records_that_only_the_second_cluster_has_are_counted():
    logs = log(first=[0, 1], failover=[0, 1], second=[0, 1, 2, 3, 4])
    made = counts(about(failover_at_s=2.5), logs)
    assert (made.get("missing", 0), made["only_second"]) == (0, 3)


def test_records_read_twice_or_never_by_the_group_are_counted():
    logs = log(first=[0, 1, 2, 3, 4], failover=[0, 1, 2, 3, 4], second=[0, 1, 2, 3, 4])
    made = counts(about(failover_at_s=9.0), logs, received(first=[0, 1, 3], standby=[1, 2, 3]))
    assert (made["reread"], made["skipped"], made["reread_s"]) == (1, 1, 0.5)  # 3 came after the fault, and 4 to nobody


def test_records_read_again_or_never_after_the_clients_went_back_are_counted():
    logs = log(first=[0, 1, 2, 3, 4, 5], failover=[0, 1], second=[0, 1, 2, 3, 4, 5])
    receipts = received(first=[0, 1, 3, 4], standby=[1])
    receipts.received_at_s += 8 * (receipts.sequence >= 3)
    receipts = pd.concat([receipts, receipts[receipts.sequence == 1].iloc[:1].assign(received_at_s=11.0)])
    made = counts(about(failover_at_s=2.9, failback_at_s=10.0), logs, receipts)
    assert (made["back_reread"], made["back_skipped"]) == (1, 2)


def test_the_headline_takes_the_faults_of_a_design_together():
    setting = [f"{design}, {fault}" for design in ("stretched, acks=all", "mirrored") for fault in ("cut", "kill")]
    rows = pd.DataFrame({"setting": setting, "missing": [0, 0, 3, 4], "acknowledged": 1_000})
    found = RegionLosses(rows.assign(writes_s=[2.5, 3.5, 4.5, 4.5], writes_s_censored=False))
    assert found.headline == (
        "After the loss of a region (cut, kill): “stretched, acks=all” missed no acknowledged records and stopped for "
        "medians of 2.50 s to 3.50 s; “mirrored” missed 7 of 2,000 acknowledged records and stopped for medians of "
        "4.50 s."
    )


def test_records_behind_newer_ones_are_counted():
    logs = log(first=[0, 1, 2, 3, 4], failover=[0], second=[0, 2, 1, 3, 4])
    standby = logs[logs["log"] == SECOND].iloc[:1].assign(producer=STANDBY, offset=0.5)
    made = counts(about(failover_at_s=4.5), pd.concat([logs, standby]))
    assert (made["behind"], made["disordered"], made["only_second"]) == (4, 1, 1)


@pytest.mark.parametrize(
    "gap, logs, reread_s",
    [
        ("none", {"first": [0, 1, 2, 3, 4], "second": [0, 1, 2, 3, 4]}, 0),
        ("not copied", {"first": [0, 1, 2, 3, 4], "second": [0, 1]}, 0),
        ("expired", {"first": [None, None, None, 3, 4], "second": [0, 3, 4]}, 0),
        ("recreated", {"first": [3, 4], "second": [0, 4]}, 0),
        ("late", {"first": [0, 1, 2, 3, 4], "second": [0, 1, 2, 3, 4]}, 2 * LATE_S),
    ],
)
def test_a_gap_is_named_by_where_the_missing_records_stood(gap, logs, reread_s):
    assert named(ACKNOWLEDGED[ACKNOWLEDGED.acknowledged_at_s.notna()], log(**logs), reread_s) == gap


@pytest.mark.kafka
@pytest.mark.slow
def test_an_episode_on_a_real_pair_accounts_for_every_record(tmp_path):
    """The first cluster is cut off; what it acknowledges alone reaches the second once it is back."""
    links = dict.fromkeys(permutations(["eu", "us"], 2), LinkSettings(10))
    soon = {"target.plugin.discovery": "service_load"}  # to look through all jars takes over a second
    pair = {"source": ["eu"], "target": ["us"], "mirror_settings": soon}
    options = {"profile": "functional", "heap_mb": 256, "metrics": False, "start_timeout_s": 300}
    episode = MirrorFault(
        "cut", "eu", before_s=1, fault_s=5, failover_s=2, failback_s=1, quiet_s=1, replication=1, partitions=2,
        acks="1", client_settings={"socket.timeout.ms": 3000},
    )  # fmt: skip
    with KafkaLab(LocalLab(["eu", "us"], links), mirrored=pair, **options) as lab:
        episode.run(lab.hosts["eu"][0], lab.hosts["us"][0], tmp_path, "cut")
        described = lab.describe()["external"]["mirrored"]
    assert described["source"]["nodes"][0]["rack"] == "eu" and described["target"]["nodes"][0]["rack"] == "us"
    tables = kafka_fault.read(tmp_path / "kafka_fault" / "cut.fault.json")
    tables = {name: pd.DataFrame(rows).assign(run_id="r", test_id="t", attempt=1) for name, rows in tables.items()}
    tables["faults"]["setting"] = "mirrored, cut"
    [row] = losses(tables).rows.to_dict("records")
    assert row["missing"] >= row["after_fault"] > 0 and row["gone"] == 0
    assert row["only_second"] > 0 and row["writes_s"] > 1
    assert "came back later" in str(losses(tables))
    assert row["went_back"] and row["back_skipped"] == 0
