"""Scrapes of brokers' exporters: kept as they came, read as metrics; with a real broker, and CloudWatch's answer."""

import http.server
import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import comes_about
from scripted_lab import Reply, ScriptedLab

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.experiments import ExperimentError
from wanbench.measure.experiments.sampling import BrokerMetrics
from wanbench.measure.kafka.java_commands import PROFILES
from wanbench.measure.kafka.programs import scrape
from wanbench.pages.price_performance.trials import counter_rates
from wanbench.read.ingest import broker_metrics

SAMPLE = Path(__file__).parent / "samples/broker_metrics/kafka-4.3.1_killed-and-restarted.prom.txt"
ANSWER = b"""# HELP records_total all of them
# TYPE records_total counter
records_total{topic="a, b=c"} 12.0
# TYPE idle_fraction gauge
idle_fraction NaN
heap_used_bytes{area="heap"} 1.5e6
"""


def read(path):
    frame = broker_metrics.read(path)["metrics"]
    context = {column.name: None for column in tables.CONTEXT} | {"source_file": str(path), "test_id": "t"}
    return tables.validate("metrics", frame.assign(**context))


@contextmanager
def exporter(answer=ANSWER, status=200, lasts_s=0.0):
    """The URL of something that answers every question alike."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(lasts_s)
            self.send_response(status)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def scraping(url, path, interval_s=0.2, timeout_s=0.2):
    about = {"node_id": 3, "host": "us/0"}
    arguments = json.dumps({"url": url, "interval_s": interval_s, "timeout_s": timeout_s, "about": about})
    with path.open("wb") as out, subprocess.Popen([sys.executable, scrape.__file__, arguments], stdout=out) as process:
        try:
            yield process
        finally:
            process.kill()


def scrapes(path):
    """What the file says of its scrapes."""
    return [json.loads(line[8:]) for line in path.read_bytes().split(b"\n") if line.startswith(b"#scrape ")]


def test_scrapes_come_again_and_again_and_once_more_at_the_end(tmp_path):
    path = tmp_path / "x.prom.txt"
    with exporter() as url, scraping(url, path, timeout_s=60.0) as process:
        assert comes_about(lambda: len(scrapes(path)) >= 4)
        before = len(scrapes(path))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    scraped = scrapes(path)
    answered = [one for one in scraped if one["error"] is None]
    cut_short = [one["error"] for one in scraped if one["error"] is not None]
    assert len(answered) >= before and answered[-1] is scraped[-1], "once more at the end"
    assert len(cut_short) <= 1 and all("asked to end" in error for error in cut_short), cut_short
    assert [one["at_s"] for one in scraped] == sorted(one["at_s"] for one in scraped)
    frame = read(path)
    assert list(frame[frame.metric == "up"].value).count(1.0) == len(answered) and set(frame.node_id) == {3}
    assert set(frame[frame.metric == "records_total"].subject) == {"topic=a, b=c"}
    assert len(frame[frame.metric == "heap_used_bytes"]) == len(answered)
    assert "idle_fraction" not in set(frame.metric), "NaN is no value"


@pytest.mark.parametrize(
    ("how", "message"), [({"status": 503}, "503"), ({"lasts_s": 5.0}, "timed out|TimeoutError"), (None, "refused")]
)
def test_an_exporter_that_does_not_answer_is_recorded_and_asked_again(tmp_path, how, message):
    path = tmp_path / "x.prom.txt"
    with exporter(**(how or {})) as url, scraping(url if how else "http://127.0.0.1:9/metrics", path) as process:
        assert comes_about(lambda: len(scrapes(path)) >= 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    frame = read(path)
    assert set(frame[frame.metric == "up"].value) == {0.0} and len(scrapes(path)) >= 2
    assert all(re.search(message, one["error"]) or "asked to end" in one["error"] for one in scrapes(path))


def test_a_scrape_that_hangs_does_not_hold_up_the_end(tmp_path):
    path = tmp_path / "x.prom.txt"
    hangs_s = 30.0
    with exporter(lasts_s=hangs_s) as url, scraping(url, path, hangs_s, hangs_s) as process:
        assert comes_about(lambda: path.stat().st_size > 0)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    first, last = scrapes(path)
    assert "asked to end" in first["error"] and "timed out" in last["error"] and last["took_s"] < hangs_s


def test_an_end_in_the_middle_of_a_scrape_costs_no_last_answer(tmp_path):
    path = tmp_path / "x.prom.txt"
    with exporter(lasts_s=0.5) as url, scraping(url, path, 30.0, 30.0) as process:
        assert comes_about(lambda: path.stat().st_size > 0)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [one["error"] is None for one in scrapes(path)] == [False, True]


def test_a_recording_over_a_restart():
    frame = read(SAMPLE)
    up = frame[frame.metric == "up"]
    assert up.value.tolist() == [1, 1, 0, 1, 1] and set(frame.host) == {"us/0"} and set(frame.node_id) == {1}
    for metric in (
        "kafka_records_in_total",
        "kafka_bytes_in_total",
        "kafka_under_replicated_partitions",
        "process_cpu_seconds_total",
        "jvm_memory_used_bytes",
        "jvm_gc_collection_seconds_sum",
    ):
        assert metric in set(frame.metric), metric
    assert frame[frame.metric == "kafka_records_in_total"].cumulative.all()
    assert not frame[frame.metric == "kafka_under_replicated_partitions"].cumulative.any()
    found = counter_rates(frame)
    records = found[found.metric == "kafka_records_in_total"]
    assert records.restarted.tolist() == [False, True, False]
    topic = found[(found.metric == "kafka_topic_records_in_total") & (found.subject == "topic=bench")].iloc[-1]
    assert (topic.increase, topic.restarted) == (1000, True), "what was produced after the restart, whole"
    kinds = set(found.subject[found.metric == "kafka_requests_total"].str.partition(",")[0])
    assert {"request=Produce", "request=Metadata"} <= kinds and (found.rate >= 0).all()


def test_one_answer_of_an_exporter_is_read_too(tmp_path):
    path = tmp_path / "saved.txt"
    path.write_bytes(ANSWER)
    frame = read(path)
    assert frame.metric.tolist() == ["records_total", "heap_used_bytes"] and frame.at_utc.isna().all()
    assert frame.cumulative.tolist() == [True, False]


def file_of(tmp_path, *scrapes_, first=b'#scrapes {"node_id": 1, "host": "a"}\n'):
    path = tmp_path / "x.prom.txt"
    header = {"at_s": 1.8e9, "took_s": 0.1, "error": None}
    path.write_bytes(
        first
        + b"".join(
            b"#scrape " + json.dumps(header | {"bytes": len(answer)} | more).encode() + b"\n" + answer + b"\n"
            for answer, more in scrapes_
        )
    )
    return path


@pytest.mark.parametrize(
    ("scrapes_", "line_number", "message"),
    [
        ([(ANSWER, {}), (b"records_total{ 3\n", {})], 11, "text format of Prometheus"),
        ([(b"records_total many\n", {})], 3, "text format of Prometheus"),
        ([(b"\xff 1\n", {})], 3, "UTF-8"),
        ([(ANSWER, {"bytes": 10**6})], 2, "and a line break"),
        ([(ANSWER, {"bytes": 5})], 2, "and a line break"),
        ([(ANSWER, {"bytes": -5})], 2, "a whole number from 0"),
        ([(ANSWER, {"at_s": None})], 2, "at_s, took_s and bytes"),
        ([(ANSWER, {"at_s": 1e300})], 2, "a number from 0"),
    ],
)
def test_a_damaged_scrape_is_named(tmp_path, scrapes_, line_number, message):
    with pytest.raises(RawDataError, match=message) as error:
        broker_metrics.read(file_of(tmp_path, *scrapes_))
    assert error.value.line_number == line_number


@pytest.mark.parametrize("first", [b"#scrapes [1]\n", b"#scrapes {\n", b"#scrapes {}"])
def test_a_damaged_first_line_is_named(tmp_path, first):
    with pytest.raises(RawDataError, match="#scrapes") as error:
        broker_metrics.read(file_of(tmp_path, first=first))
    assert error.value.line_number == 1


def test_nothing_is_no_answer(tmp_path):
    path = tmp_path / "x.prom.txt"
    path.write_bytes(b"")
    with pytest.raises(RawDataError, match="the text of a Prometheus exporter"):
        broker_metrics.read(path)


@pytest.mark.fuzz
@given(st.data())
def test_damaged_files_end_in_rows_or_in_an_error(tmp_path_factory, data):
    content = SAMPLE.read_bytes()[:4000]
    at = data.draw(st.integers(0, len(content) - 1))
    put = data.draw(
        st.sampled_from([b"", b"\x00", b"9" * 400, b"{", b'"', b"}", b"\xff", b"#scrape {}\n", b"=", b"\\"])
    )
    path = tmp_path_factory.mktemp("damaged", numbered=True) / "x.prom.txt"
    damaged = content[:at] + put + content[at + data.draw(st.integers(0, 40)) :]
    path.write_bytes(damaged if data.draw(st.booleans()) else damaged.partition(b"\n")[2].partition(b"\n")[2])
    with suppress(RawDataError):
        read(path)


def test_an_answer_of_cloudwatch_fits_the_same_table():
    """What boto3's get_metric_data returns for brokers of MSK, with the queries that it was asked."""
    queries = [
        {
            "Id": f"m{broker}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/Kafka",
                    "MetricName": "NetworkRxPackets",
                    "Dimensions": [
                        {"Name": "Cluster Name", "Value": "bench"},
                        {"Name": "Broker ID", "Value": str(broker)},
                    ],
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for broker in (1, 2)
    ]
    times = ["2026-11-21T12:00:00+00:00", "2026-11-21T12:01:00+00:00"]
    answer = {
        "MetricDataResults": [
            {"Id": query["Id"], "Timestamps": times, "Values": [6e5, 5.4e5], "StatusCode": "Complete"}
            for query in queries
        ]
    }
    rows = []
    for query, result in zip(queries, answer["MetricDataResults"], strict=True):
        asked = query["MetricStat"]
        labels = {one["Name"]: one["Value"] for one in asked["Metric"]["Dimensions"]}
        rows += [
            {
                "source_file": "cloudwatch.json",
                "source": "cloudwatch",
                "node_id": int(labels["Broker ID"]),
                "at_utc": at,
                "interval_s": asked["Period"],
                "subject": ", ".join(f"{name}={value}" for name, value in labels.items()),
                "metric": asked["Metric"]["MetricName"],
                "statistic": asked["Stat"],
                "value": value,
                "unit": "",
                "cumulative": False,
            }
            for at, value in zip(result["Timestamps"], result["Values"], strict=True)
        ]
    frame = tables.from_rows("metrics", rows)
    per_s = frame.value / frame.interval_s
    assert per_s.tolist() == [1e4, 9e3, 1e4, 9e3] and frame.node_id.tolist() == [1, 1, 2, 2]
    assert counter_rates(frame).empty, "sums of a minute are no counters"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BrokerMetrics(interval_s=0), "interval_s is 0"),
        (lambda: BrokerMetrics(timeout_s=6), "at most interval_s, 5.0"),
        (lambda: BrokerMetrics(duration_s=None), "duration_s is None"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def scripted(lab, monkeypatch, *ports):
    monkeypatch.setattr("scripted_lab.ScriptedHost.scratch", "/nowhere")
    monkeypatch.setattr("scripted_lab.ScriptedHost.put", lambda *_: None)
    brokers = [SimpleNamespace(node_id=n, host=lab.host("b"), metrics_port=port) for n, port in enumerate(ports, 1)]
    lab.host("a").cluster = SimpleNamespace(brokers=tuple(brokers))


def test_each_broker_has_a_file_and_one_that_cannot_be_asked_is_a_reason(tmp_path, monkeypatch):
    def script(host, command):
        if ":9405/" in command[2]:
            return Reply(b"#scrapes {}\n", b"Traceback\nMemoryError\n", 1)
        return Reply(b'#scrapes {"node_id": 1, "host": "b"}\n')

    with ScriptedLab(["a", "b"], script) as lab:
        scripted(lab, monkeypatch, 9404, 9405, None)
        with (
            pytest.raises(ExperimentError, match=r"scrapes broker 2 ended with status 1: MemoryError") as failure,
            BrokerMetrics().concurrently(lab.host("a"), lab.host("b"), tmp_path, "s"),
        ):
            pass
        programs = [process for process in lab.processes if "/nowhere/scrape.py" in process.command[1]]
        assert len(programs) == 2 and all(process.stopped for process in programs)
    assert [file.path for file in failure.value.files] == [
        f"broker_metrics/s.{name}" for name in ("1.prom.txt", "2.prom.txt", "2.prom.stderr.txt")
    ]
    settings_ = json.loads(programs[0].command[2])
    assert settings_["url"] == "http://10.0.0.2:9404/metrics" and settings_["about"] == {"node_id": 1, "host": "b"}


def test_without_brokers_that_can_be_asked_it_does_not_start(tmp_path, monkeypatch):
    with ScriptedLab(["a", "b"]) as lab:
        with pytest.raises(ExperimentError, match="no Kafka cluster"):
            BrokerMetrics().run(lab.host("a"), lab.host("b"), tmp_path, "s")
        scripted(lab, monkeypatch, None)
        with pytest.raises(ExperimentError, match="metrics=True"):
            BrokerMetrics().run(lab.host("a"), lab.host("b"), tmp_path, "s")


@pytest.mark.lab
@pytest.mark.kafka
def test_real_brokers_count_what_was_produced(shared_cluster, tmp_path):
    cluster, lab = shared_cluster, shared_cluster.lab
    source, target = lab.host("us"), lab.host("eu")
    cluster.create_topic("bench", placement=[[1], [2]])

    arguments = ["--topic", "bench", "--num-records", "5000", "--record-size", "200", "--throughput", "-1"]
    arguments += ["--bootstrap-server", cluster.bootstrap, "--command-config", cluster.client_file(source)]
    tool = "org.apache.kafka.tools.ProducerPerformance"

    def produce():
        source.run(cluster.java(source, tool, *arguments, heap_mb=64, jvm=PROFILES["functional"]), timeout_s=240)

    produce()
    # The first scrape takes as long as it needs; the one at the end may be cut short on a busy machine.
    with BrokerMetrics(interval_s=30, timeout_s=30).concurrently(source, target, tmp_path, "s") as files:
        produce()
    frames = [read(tmp_path / file.path) for file in files]
    assert [set(frame.host) for frame in frames] == [{"eu/0"}, {"us/0"}, {"asia/0"}]
    assert all(file.returncode == 0 for file in files)
    counted = 0
    for frame in frames:
        assert frame[frame.metric == "up"].value.iloc[0] == 1
        assert frame[frame.metric == "process_cpu_seconds_total"].value.is_monotonic_increasing
        assert "kafka_under_replicated_partitions" in set(frame.metric)
        of_topic = frame[(frame.metric == "kafka_topic_records_in_total") & frame.subject.str.contains("bench")]
        counted += of_topic.value.max() if len(of_topic) else 0
    assert 5000 <= counted <= 10_000
