"""Who used the processors: the program on a host, the experiment, and the files that it leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from confluent_kafka import Producer
from mock_kafka import HereHost

from wanbench.errors import RawDataError
from wanbench.measure.experiments import KafkaOpenLoop, ProcessorUse
from wanbench.measure.experiments.kafka_open_loop_session import OpenLoopSession
from wanbench.measure.kafka.programs import fault_producer
from wanbench.measure.kafka.programs import processor_use as program
from wanbench.read.ingest import processors as reader

BUSY = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass\nprint(1, flush=True)\ntime.sleep(60)"


def busy(seconds, module="wanbench.measure.kafka.programs.open_loop_producer"):
    """A process that has used the processor for so long, under the name of one of our programs."""
    command = [sys.executable, "-c", BUSY, str(seconds), "-m", module]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def test_programs_count_from_the_first_sample_and_keep_what_ended_used():
    old = busy(0.3)
    try:
        programs = program.Programs()
        assert "open_loop_producer" not in programs.sample()["programs"], "what it used before does not count"
        new = busy(0.5)
        first = programs.sample()["programs"]["open_loop_producer"]
        new.kill()
        new.wait()
        assert programs.sample()["programs"]["open_loop_producer"] >= first >= 0.4 * os.sysconf("SC_CLK_TCK")
    finally:
        old.kill()
        old.wait()


def test_a_foreign_program_has_no_name_outside_a_lab():
    programs = program.Programs()
    programs.sample()
    process = busy(0.3, "somebody.elses.program")
    try:
        assert not any("somebody" in name or "elses" in name for name in programs.sample()["programs"])
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("settings", [{}, {"pid_file": "pid"}])
def test_it_ends_on_sigterm_after_one_more_sample(settings):
    settings = {"interval_s": 600, "about": {}, **settings}
    process = subprocess.Popen([sys.executable, program.__file__, json.dumps(settings)], stdout=subprocess.PIPE)
    for _ in range(2):
        process.stdout.readline()
    process.terminate()
    (last,) = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0 and json.loads(last)["at_s"]


def test_samples_of_this_machine_become_rows(tmp_path):
    (tmp_path / "hosts").mkdir()
    host = HereHost("eu", tmp_path / "hosts")
    with ProcessorUse(interval_s=0.2).concurrently(host, host, tmp_path, "s") as files:
        process = busy(0.3)
        time.sleep(0.5)
    process.kill()
    process.wait()
    assert sorted(file.path for file in files) == [
        "processor_use/s.eu-0.driver.json", "processor_use/s.eu-0.processors.jsonl.gz",
    ]  # fmt: skip
    rows = reader.read_machines(tmp_path / "processor_use/s.eu-0.processors.jsonl.gz")["metrics"]
    last = rows.groupby("subject").value.max()
    assert set(rows.source) == {"processors"} and set(rows.host) == {"eu/0"} and rows.cumulative.all()
    assert last["open_loop_producer"] > 0.1 and last[reader.DRIVER] >= 0
    assert last[reader.ALL] >= last[reader.BUSY] >= last["open_loop_producer"] - 0.1
    assert not any(process.is_running() for process in host.started)


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"at_s": 1, "machine": [1, 2], "programs": {}}',
        '{"at_s": 1, "machine": [1, 2, 3, 4, 5, 6, 7, -8], "programs": {}}',
        '{"machine": [1, 2, 3, 4, 5, 6, 7, 8], "programs": {}}',
        '{"at_s": 1, "machine": [1, 2, 3, 4, 5, 6, 7, 8], "programs": {"a": "b"}}',
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "s.h.processors.jsonl"
    path.write_text('{"host": "h", "ticks_per_s": 100}\n' + line + "\n")
    with pytest.raises(RawDataError, match=":2"):
        reader.read_machines(path)


def test_the_time_of_the_driver_is_read_from_its_own_file(tmp_path):
    path = tmp_path / "s.h.processors.jsonl"
    machine = [10, 0, 5, 100, 2, 1, 1, 0]
    lines = [
        {"host": "h", "ticks_per_s": 100},
        {"at_s": 10.0, "machine": machine, "programs": {}},
        {"at_s": 11.0, "machine": [n + 10 for n in machine], "programs": {"lab_supervisor": 7}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    beside = tmp_path / "s.h.driver.json"
    beside.write_text('{"at_s_and_used_s": [[9, 1.5], [12, 1.75]]}')
    rows = reader.read_machines(path)["metrics"]
    value = rows.set_index(["subject", "at_utc"]).value
    at = pd.Timestamp(11, unit="s", tz="UTC")
    assert (value[reader.ALL, at], value[reader.BUSY, at], value[reader.INTERRUPTS, at]) == (0.8, 0.6, 0.2)
    assert value["lab_supervisor", at] == 0.07 and rows.value[rows.subject == reader.DRIVER].tolist() == [0, 0.25]
    beside.write_text('{"at_s_and_used_s": [[9, 1.5]]}')
    with pytest.raises(RawDataError, match=r"driver\.json"):
        reader.read_machines(path)


def test_producers_of_an_open_loop_load_do_not_spin_while_records_wait(tmp_path):
    """An idempotent producer of librdkafka used half a processor and more here: more than 0.7 s."""
    mock = Producer(
        {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "test.mock.broker.rtt": 300, "log_level": 2}
    )
    [broker] = mock.list_topics(timeout=30).brokers.values()
    host = HereHost("eu", tmp_path)
    load = KafkaOpenLoop(100)
    session = OpenLoopSession(load, None, [host], [host], tmp_path, "s")
    session.made = {"t": {"partitions": [{"partition": n, "leader": 1 + n % 2} for n in range(3)]}}
    settings = session._producer_settings()
    assert settings["max.in.flight.requests.per.connection"] == 10, "five batches for each partition of a broker"
    session.settings = KafkaOpenLoop(100, idempotence=True)
    Producer(session._producer_settings() | {"bootstrap.servers": "none"})  # librdkafka refuses more than five
    client = Producer(settings | {"bootstrap.servers": f"{broker.host}:{broker.port}"})
    answered = Counter()
    client.produce("t", b"first", partition=0, on_delivery=lambda error, _: answered.update([error is None]))
    assert client.flush(30) == 0
    for _ in range(500):
        client.produce("t", bytes(2048), partition=0)
    before_s = time.process_time()
    time.sleep(1.5)
    assert len(client) > 100, "records must wait for this test to say anything"
    assert time.process_time() - before_s < 0.4
    client.purge()


MOCK = """
import time, confluent_kafka
mock = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 2})
[broker] = mock.list_topics(timeout=30).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
time.sleep(60)
"""


def test_a_producer_of_an_episode_hardly_uses_the_processor_while_its_broker_is_frozen(tmp_path):
    """With five requests in flight, it used most of a processor here: 1.7 s."""
    with subprocess.Popen([sys.executable, "-c", MOCK], stdout=subprocess.PIPE, text=True) as mock:
        try:
            settings = {"bootstrap.servers": mock.stdout.readline().strip(), "log_level": 2}
            (tmp_path / "client.json").write_text(json.dumps(settings))
            options = {"client": tmp_path / "client.json", "topic": "t", "partitions": 1, "number": 0, "acks": "all"}
            options |= {"interval-ns": 50_000_000, "record-bytes": 100, "stop-file": tmp_path / "stop", "drain-s": 0}
            command = [sys.executable, "-m", fault_producer.__name__]
            command += [text for name, value in options.items() for text in (f"--{name}", str(value))]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as producer:
                for line in producer.stdout:
                    if '"acknowledged"' in line:
                        break
                mock.send_signal(signal.SIGSTOP)
                time.sleep(1)  # until five records wait
                before_s = used_s(producer.pid)
                time.sleep(2)
                used = used_s(producer.pid) - before_s
                (tmp_path / "stop").touch()
                said = producer.stdout.read()
            assert said.count('"no answer"') > 30, "records must wait for this test to say anything"
            assert used < 0.3
        finally:
            mock.kill()


def used_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
