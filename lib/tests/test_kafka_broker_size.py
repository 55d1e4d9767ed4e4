"""Sizes of brokers: what is allowed, the trials that have them, and the samples of what a quota makes wait."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import PATIENCE_S

from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.campaign.start import check_trials
from wanbench.measure.experiments import BrokerProcessors, KafkaLoad, KafkaTrial
from wanbench.measure.kafka import BrokerSize
from wanbench.measure.kafka.programs import processor_use
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.plan import in_blocks, make_trials
from wanbench.read.ingest import processors

SMALL = BrokerSize("small", 0.3, 2e7, price_usd_per_hour=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"processors": 0},
        {"link_bps": 10},
        {"price_usd_per_hour": -1},
        {"link_bps": "fast"},
        {"burst_bps": 1e6, "burst_bytes": 1e6},
        {"link_bps": 1e6, "burst_bps": 2e6},
        {"link_bps": 1e6, "burst_bytes": 9},
        {"link_bps": 2e6, "burst_bps": 1e6, "burst_bytes": 1e6},
    ],
)
def test_a_size_that_cannot_be_is_refused(wrong):
    with pytest.raises(ParameterError, match="BrokerSize"):
        BrokerSize(**{"name": "small"} | wrong)


def test_a_trial_takes_one_size_or_one_per_broker():
    load = KafkaLoad()
    assert KafkaTrial(load, broker_sizes=[SMALL, None]).broker_sizes == (SMALL, None)
    assert "small (0.3 processors, 20 Mbit/s)" in str(KafkaTrial(load, broker_sizes=SMALL))
    bursting = BrokerSize("bursting", None, 8e6, burst_bps=24e6, burst_bytes=16e6)
    assert str(bursting) == "bursting (8 Mbit/s, 24 Mbit/s for 16 MB of credit)"
    for wrong in ("small", [None], [SMALL, "large"], []):
        with pytest.raises(ParameterError, match="broker_sizes"):
            KafkaTrial(load, broker_sizes=wrong)


def test_sizes_that_cannot_be_given_are_refused_before_anything_starts():
    lab = LocalLab(["a", "b"], {})
    trials = in_blocks({"x": KafkaTrial(KafkaLoad(), broker_sizes=(SMALL, None))}, replicates=1)
    plan = make_trials(trials, from_region="a", to_region="b")
    with pytest.raises(ParameterError, match="one for each of 3 brokers"):
        check_trials(plan, lab, ["b"] * 3, {})


def test_every_block_has_every_setting():
    trials = in_blocks({"a": 1, "b": 2, "c": 3}, replicates=4, seed=3)
    for block in range(1, 5):
        assert sorted(trial.setting for trial in trials if trial.block == block) == ["a", "b", "c"]
    assert len({tuple(t.setting for t in trials if t.block == block) for block in range(1, 5)}) > 1


def test_samples_of_a_process_are_read_as_counters(tmp_path):
    pid_file = tmp_path / "pid"
    pid_file.write_text(f"{os.getpid()}\n")
    settings = {"pid_file": str(pid_file), "interval_s": 0.1, "about": {"node_id": 2, "host": "a/0"}}
    began_s = time.time()
    program = subprocess.Popen([sys.executable, processor_use.__file__, json.dumps(settings)], stdout=subprocess.PIPE)
    try:
        lines = [program.stdout.readline() for _ in range(3)]
    finally:
        program.send_signal(signal.SIGTERM)
        rest = program.communicate(timeout=PATIENCE_S)[0]
    assert program.returncode == 0
    raw = tmp_path / "x.2.processors.jsonl"
    raw.write_bytes(b"".join(lines) + rest)
    rows = processors.read_brokers(raw)["metrics"]
    used = rows[rows.metric == "user_s"]
    assert len(used) >= 2 and used.value.is_monotonic_increasing and used.value.iloc[0] > 0
    assert set(rows.node_id) == {2} and set(rows.source) == {"process"} and used.cumulative.all()
    assert began_s < used.at_utc.iloc[-1].timestamp() < time.time()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ('{"node_id": 1, "host": "a", "ticks_per_s": 0}\n', 1),
        ('{"node_id": 1, "host": "a", "ticks_per_s": 100}\n{"user_ticks": 3}\n', 2),
        ('{"node_id": 1, "host": "a", "ticks_per_s": 100}\n{"at_s": 5, "user_ticks": -3}\n', 2),
        ('{"node_id": 1, "host": "a", "ticks_per_s": 100}\n{"at_s": 5', 2),
    ],
)
def test_damaged_samples_are_refused(tmp_path, text, line):
    path = Path(tmp_path, "x.processors.jsonl")
    path.write_text(text)
    with pytest.raises(RawDataError) as error:
        processors.read_brokers(path)
    assert error.value.line_number == line


def test_a_quota_that_made_a_broker_wait_is_read(tmp_path):
    path = Path(tmp_path, "x.processors.jsonl")
    about = {"node_id": 1, "host": "a", "ticks_per_s": 100}
    sample = {
        "at_s": 5.0,
        "user_ticks": 30,
        "system_ticks": 10,
        "nr_periods": 9,
        "nr_throttled": 4,
        "throttled_ns": 2e8,
    }
    path.write_text(f"{json.dumps(about)}\n{json.dumps(sample)}\n")
    values = processors.read_brokers(path)["metrics"].set_index("metric").value
    assert values.to_dict() == {
        "user_s": 0.3, "system_s": 0.1, "quota_periods": 9, "quota_waits": 4, "quota_waited_s": 0.2,
    }  # fmt: skip


def test_samples_need_a_time_between_them():
    with pytest.raises(ParameterError, match="interval_s"):
        BrokerProcessors(interval_s=0)
