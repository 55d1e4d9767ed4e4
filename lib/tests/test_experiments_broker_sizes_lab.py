"""Sizes of brokers on a real cluster: they hold while a block runs, and nothing of them is left afterwards."""

import os
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.errors import LabError
from wanbench.measure.experiments import BrokerProcessors
from wanbench.measure.experiments.broker_control import apply_sizes
from wanbench.measure.kafka import BrokerSize
from wanbench.read.ingest import processors

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

SMALL = BrokerSize("small", 0.5, 2e7)


@pytest.fixture
def lab(own_cluster):
    return own_cluster.lab


def groups():
    """Control groups that the lab's programs have made on this machine, by process that is in one."""
    folders = [path for root in ("cpu", ".") for path in Path("/sys/fs/cgroup", root).glob("**/wanbench-*")]
    return {folder.name for folder in folders if os.path.isdir(folder)}


def has_no_limits(lab, before):
    assert not any(lab.gateways.values())
    assert {link.rate_bps for link in lab.links.values()} == {None}
    assert groups() <= before


def test_a_size_holds_and_goes(lab, own_cluster, tmp_path):
    before, host = groups(), lab.host("eu")
    with apply_sizes(host, SMALL):
        assert lab.gateways["us"] == 2e7 and lab.links["eu", "us"].rate_bps == 2e7
        BrokerProcessors(interval_s=0.2, duration_s=2).run(host, lab.host("us"), tmp_path, "t")
    has_no_limits(lab, before)
    rows = processors.read_brokers(tmp_path / "broker_processors/t.1.processors.jsonl")["metrics"]
    if groups() or Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists():
        assert rows[rows.metric == "quota_periods"].value.max() > 0
    assert rows[rows.metric == "user_s"].value.iloc[-1] > 0


def test_a_size_goes_when_the_load_fails_and_a_dead_broker_is_started_again(lab, own_cluster):
    before = groups()
    with pytest.raises(LabError, match="the load failed"), apply_sizes(lab.host("eu"), (None, SMALL, None)):
        own_cluster.kill(2)
        raise LabError("the load failed")
    has_no_limits(lab, before)
    assert comes_about(lambda: own_cluster.runs(2))
