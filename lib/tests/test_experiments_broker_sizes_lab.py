"""Sizes of brokers on a real cluster: they hold while a block runs, and nothing of them is left afterwards."""

import os
from itertools import permutations
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.errors import LabError
from wanbench.experiments import BrokerProcessors
from wanbench.experiments.broker_sizes import sized
from wanbench.ingest import broker_processors
from wanbench.kafka import BrokerSize, Cluster
from wanbench.labs.local import LocalLab
from wanbench.links import LinkSettings

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

REGIONS = ["here", "there"]
SMALL = BrokerSize("small", 0.5, 2e7)


@pytest.fixture(scope="module")
def lab():
    with LocalLab(REGIONS, dict.fromkeys(permutations(REGIONS, 2), LinkSettings(1))) as opened:
        yield opened


@pytest.fixture(scope="module")
def own_cluster(lab):
    """Not the cluster that tests share: its broker is killed."""
    with Cluster(lab, ["there"], profile="functional", heap_mb=256) as started:
        yield started


def groups():
    """Control groups that the lab's programs have made on this machine, by process that is in one."""
    folders = [path for root in ("cpu", ".") for path in Path("/sys/fs/cgroup", root).glob("**/wanbench-*")]
    return {folder.name for folder in folders if os.path.isdir(folder)}


def has_no_limits(lab, before):
    assert lab.gateways.get("there") is None
    assert {link.rate_bps for link in lab.links.values()} == {None}
    assert groups() <= before


def test_a_size_holds_and_goes(lab, own_cluster, tmp_path):
    before, here = groups(), lab.host("here")
    with sized(here, SMALL):
        assert lab.gateways["there"] == 2e7 and lab.links["here", "there"].rate_bps == 2e7
        BrokerProcessors(interval_s=0.2, duration_s=2).run(here, lab.host("there"), tmp_path, "t")
    has_no_limits(lab, before)
    rows = broker_processors.read(tmp_path / "broker_processors/t.1.processors.jsonl")["metrics"]
    if groups() or Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists():
        assert rows[rows.metric == "quota_periods"].value.max() > 0
    assert rows[rows.metric == "user_s"].value.iloc[-1] > 0


def test_a_size_goes_when_the_load_fails_and_a_dead_broker_is_started_again(lab, own_cluster):
    before = groups()
    with pytest.raises(LabError, match="the load failed"), sized(lab.host("here"), (SMALL,)):
        own_cluster.kill(1)
        raise LabError("the load failed")
    has_no_limits(lab, before)
    assert comes_about(lambda: own_cluster.runs(1))
