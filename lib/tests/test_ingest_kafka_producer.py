"""kafka-producer-perf-test: its output in every form that is known, and what is left when it was spoilt."""

import json

import pandas as pd
import pytest
from reading import only
from reading import read_perf_tool as read

from wanbench.errors import RawDataError
from wanbench.read.ingest import kafka_load

MIB = 8 * 2**20
WINDOW = "9998 records sent, 1999.6 records/sec (1.91 MB/sec), 28.5 ms avg latency, 432.0 ms max latency."
SUMMARY = (
    "100000 records sent, 1999.600080 records/sec (1.91 MB/sec), 3.22 ms avg latency, 432.00 ms max latency, "
    "0 ms 50th, 1 ms 95th, 108 ms 99th, 390 ms 99.9th."
)
STEADY = SUMMARY.replace("100000 records", "60000 steady state records").replace("3.22 ms", "1.50 ms")
WARN = "[2022-11-16 17:00:42,193] WARN [Producer clientId=perf-producer-client] Got error produce response (Sender)"
DIED = "org.apache.kafka.common.errors.TimeoutException: Expiring 8 record(s) for t-0"


def test_windows_and_summary():
    found = read(WINDOW, WINDOW, SUMMARY)
    row = only(found["producers"])
    assert (row.producer, row.records, row.warmup, row.n_errors) == (0, 100_000, False, 0)
    assert row.records_per_s == 1999.60008 and row.throughput_bps == pytest.approx(1.91 * MIB)
    assert (row.mean_latency_ms, row.max_latency_ms) == (3.22, 432)
    assert row[["p50_latency_ms", "p95_latency_ms", "p99_latency_ms", "p999_latency_ms"]].tolist() == [0, 1, 108, 390]
    assert pd.isna(row.error)
    windows = found["producer_windows"]
    assert windows.window.tolist() == [0, 1] and windows.records.tolist() == [9998, 9998]
    assert windows.length_s.tolist() == [9998 / 1999.6] * 2 and windows.mean_latency_ms.tolist() == [28.5] * 2
    assert windows.warmup.isna().all() and windows.printed_at_s.isna().all()


@pytest.mark.parametrize(
    "line, records, rate, mean",
    [
        (SUMMARY.replace(".", ",").replace("99,9th,", "99.9th."), 100_000, 1999.60008, 3.22),
        (SUMMARY.replace("3.22", "٣٫٢٢").replace("100000", "١٠٠٠٠٠"), 100_000, 1999.60008, 3.22),
        (SUMMARY.rstrip("."), 100_000, 1999.60008, 3.22),
        (SUMMARY.split(", 0 ms 50th")[0] + ".", 100_000, 1999.60008, 3.22),
    ],
    ids=["comma", "arabic", "no-stop", "no-percentiles"],
)
def test_numbers_of_any_locale_and_age(line, records, rate, mean):
    row = only(read(line)["producers"])
    assert (row.records, row.records_per_s, row.mean_latency_ms) == (records, rate, mean)
    assert pd.isna(row.error) and row.n_errors == 0


def test_windows_of_old_versions_lack_a_unit():
    window = only(read(WINDOW.replace("432.0 ms max", "432.0 max"))["producer_windows"])
    assert window.max_latency_ms == 432


@pytest.mark.parametrize("line", [SUMMARY.replace("1999.600080", "1,600"), WINDOW.replace("1999.6", "1,600")])
def test_what_could_be_read_in_two_ways_is_not_guessed(line):
    found = read(WINDOW, line)
    assert len(found["producer_windows"]) == 1
    assert only(found["producers"]).error == f"no summary: {line}" and found["producers"].n_errors[0] == 1


@pytest.mark.parametrize("line", [SUMMARY.replace("100000", "9" * 19), SUMMARY.replace("100000", "-5")])
def test_figures_that_cannot_be_are_no_summary(line):
    row = only(read(WINDOW, line)["producers"])
    assert pd.isna(row.records) and row.n_errors == 1 and row.error.startswith("no summary: ")


def test_the_warm_up_is_kept_apart():
    begin = "Warmup first 40000 records. Steady state results will print after the complete test summary."
    found = read(begin, WINDOW, "In steady state.", WINDOW, WINDOW, SUMMARY, STEADY)
    assert found["producer_windows"].warmup.tolist() == [True, False, False]
    rows = found["producers"]
    assert rows.warmup.tolist() == [True, False] and rows.records.tolist() == [100_000, 60_000]
    assert rows.mean_latency_ms.tolist() == [3.22, 1.5] and rows.producer.tolist() == [0, 0]
    assert rows.error.isna().all()
    cut = read(begin, WINDOW, SUMMARY)["producers"]
    assert cut.warmup.tolist() == [True, False] and cut.records.isna().tolist() == [False, True]
    assert cut.error[1] == "no summary of the steady state"
    assert only(read(WINDOW, STEADY)["producers"]).records == 60_000


def test_errors_and_warnings_count_and_traces_belong_to_them():
    found = read(
        "[2022-11-16 17:00:41,000] INFO ProducerConfig values: ",
        "\tacks = -1",
        "\tbatch.size = 16384",
        "",
        WARN,
        WINDOW,
        "java.util.concurrent.ExecutionException: oh",
        "\tat org.apache.kafka.tools.ProducerPerformance.main(ProducerPerformance.java:52)",
        f"Caused by: {DIED}",
        "\t... 3 more",
        "something nobody has seen before",
        SUMMARY,
    )
    row = only(found["producers"])
    assert (row.n_errors, row.records, len(found["producer_windows"])) == (2, 100_000, 1)
    assert row.error == WARN


@pytest.mark.parametrize(
    "line, n",
    [
        ("[2022-11-16 17:00:42,193] ERROR oh (Sender)", 1),
        ("2022-11-16T17:00:42.193Z WARN oh", 1),
        ("17:00:42.193 [main] WARN o.a.k.Sender - oh", 1),
        ("17:00:42.193 [main] DEBUG o.a.k.Sender - oh", 0),
        ("INFO oh", 0),
        ("[2022-11-16 17:00:42,193] INFO ERROR is a word here", 0),
        ("SLF4J: No SLF4J providers were found.", 0),
        ("WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test", 0),
        ("Number of records read: 5", 0),
        ("$ kafka-topics.sh", 0),
        ("+ bin/kafka-producer-perf-test.sh --topic t", 0),
        ("==> Produce from east: topic async (acks=1)", 0),
        ("real\t0m12.345s", 0),
        ("9.00user 1.00system 0:12.34elapsed 81%CPU (0avgtext+0avgdata 9maxresident)k", 0),
        ("Created topic perf.", 0),
        ("50% of the messages failed", 1),
        ("Failed to send a record", 1),
        ("bash: line 1: 4711 Killed  bin/kafka-producer-perf-test.sh", 1),
    ],
)
def test_which_lines_count(line, n):
    row = only(read(WINDOW, line, SUMMARY)["producers"])
    assert row.n_errors == n and (row.error == line if n else pd.isna(row.error))


def test_without_a_summary_the_last_error_says_why():
    row = only(read(WARN, WINDOW, DIED, WARN)["producers"])
    assert pd.isna(row.records) and pd.isna(row.p99_latency_ms)
    assert (row.n_errors, row.error) == (3, f"no summary: {DIED}")
    assert only(read(WINDOW)["producers"]).error == "no summary: the output ends before it"
    command = "bin/kafka-producer-perf-test.sh --topic t --num-records 500000"
    for before in (command, f"$ {command}", "==> Produce from east"):
        row = only(read(before, WINDOW)["producers"])
        assert (row.n_errors, row.error) == (0, "no summary: the output ends before it")
    assert only(read(WINDOW, "connection closed")["producers"]).error == "no summary: connection closed"


@pytest.mark.parametrize("whole", [WINDOW, SUMMARY])
def test_a_last_line_cut_anywhere_is_no_figure(whole):
    for end in [*range(5, len(whole) - 1, 7), *range(len(whole) - 12, len(whole) - 1)]:
        found = kafka_load.read(f"{WINDOW}\n{whole[:end]}".encode())
        if whole[:end].endswith("99.9th"):
            continue
        row = only(found["producers"])
        assert len(found["producer_windows"]) == 1 and pd.isna(row.records) and row.n_errors == 0
        assert (
            row.error.startswith("no summary: the output is truncated in ") and whole[:end].strip()[-20:] in row.error
        )


def test_a_line_cut_in_the_middle_of_the_file_counts():
    row = only(read(WINDOW[:40], WINDOW, SUMMARY)["producers"])
    assert (row.n_errors, row.error, row.records) == (1, WINDOW[:40], 100_000)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_from_windows(encoding, end):
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    found = read(mark + WINDOW, SUMMARY, end=end, encoding=encoding)
    assert len(found["producer_windows"]) == 1 and only(found["producers"]).n_errors == 0


def test_nothing_sent_and_no_time():
    none = (
        "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg latency, 0.00 ms max latency, 0 ms 50th, 0 ms 95th, "
        "0 ms 99th, 0 ms 99.9th."
    )
    row = only(read(none)["producers"])
    assert row.records == 0 and row.filter(like="latency").isna().all() and pd.isna(row.records_per_s)
    at_once = WINDOW.replace("1999.6", "Infinity").replace("1.91", "∞")
    window = only(read(at_once, SUMMARY)["producer_windows"])
    assert window.records == 9998 and pd.isna(window.length_s) and pd.isna(window.throughput_bps)


def test_a_clock_that_was_set_back_leaves_nulls():
    window = only(read(WINDOW.replace("28.5", "-28.5").replace("432.0", "-1.0"), SUMMARY)["producer_windows"])
    assert pd.isna(window.mean_latency_ms) and pd.isna(window.max_latency_ms) and window.records == 9998


def test_metrics():
    found = read(
        SUMMARY,
        "",
        "Metric Name                                                 Value",
        "app-info:version:{client-id=perf-producer-client}         : 4.3.1",
        "app-info:commit-id:{client-id=perf-producer-client}       : 12345678",
        "app-info:start-time-ms:{client-id=perf-producer-client}   : 1795283923828",
        "producer-metrics:batch-size-avg:{client-id=perf-producer-client} : 16220,100",
        "producer-metrics:record-send-total:{client-id=perf-producer-client} : 100000.000",
        "producer-metrics:record-queue-time-avg:{client-id=perf-producer-client} : NaN",
        "producer-node-metrics:request-rate:{client-id=perf-producer-client, node-id=node-1} : 1.500",
    )
    metrics = found["metrics"].set_index("metric")
    assert metrics.value.to_dict() == {
        "app-info:start-time-ms": 1795283923828,
        "producer-metrics:batch-size-avg": 16220.1,
        "producer-metrics:record-send-total": 100_000,
        "producer-node-metrics:request-rate": 1.5,
    }
    assert metrics.cumulative[metrics.cumulative].index.tolist() == ["producer-metrics:record-send-total"]
    assert metrics.subject["producer-node-metrics:request-rate"] == "client-id=perf-producer-client, node-id=node-1"
    assert set(metrics.source) == {"producer"} and set(metrics.host) == {"producer 0"}
    assert only(found["producers"]).n_errors == 0


def test_files_next_to_the_output(tmp_path):
    path = tmp_path / "0001.producer-2.txt"
    path.write_text(f"{WINDOW}\n{WINDOW}\n{WINDOW}\n{DIED[:30]}")
    line_times = tmp_path / "0001.producer-2.lines.json"
    line_times.write_text(json.dumps({"started_at_s": 90.0, "lines": [100.0, 105.5, 111.0, 111.5]}))
    (tmp_path / "0001.producer-2.stderr.txt").write_text(f"{WARN}\n")
    (tmp_path / "0001.times.json").write_text(json.dumps({"counts_from_s": 100.25, "asked_to_stop_at_s": 112}))
    found = kafka_load.read(path)
    windows, row = found["producer_windows"], only(found["producers"])
    assert windows.printed_at_s.tolist() == [100.0, 105.5, 111.0] and windows.warmup.tolist() == [True, False, False]
    assert windows.producer.unique().tolist() == [row.producer] == [2]
    assert row.n_errors == 1
    assert row.error.startswith("no summary: the tool was stopped at its scheduled end: the output is truncated in")
    for text in ("[]", "{}", '{"lines": [2, 1]}', '{"lines": ["a"]}', '{"lines": [1e300]}', "{"):
        line_times.write_text(text)
        with pytest.raises(RawDataError, match=r"lines\.json"):
            kafka_load.read(path)
    line_times.unlink()
    (tmp_path / "0001.times.json").write_text('{"counts_from_s": "x"}')
    with pytest.raises(RawDataError, match=r"times\.json"):
        kafka_load.read(path)


@pytest.mark.parametrize(
    "content, found",
    [(b"", "an empty file"), (b"\n \n", "an empty file"), (b"hello\n", "hello"), (b"1,2,3\n4,5,6\n", "1,2,3")],
)
def test_what_none_of_the_tools_printed_is_refused(content, found):
    with pytest.raises(RawDataError, match="kafka-producer-perf-test") as error:
        kafka_load.read(content)
    assert found in error.value.found


def test_a_tool_that_only_complained_is_a_row(tmp_path):
    path = tmp_path / "a.producer-0.txt"
    for printed, n, why in (
        (
            "usage: kafka-producer-perf-test\n       [-h]\nkafka-producer-perf-test: error: no topic\n",
            1,
            "error: no topic",
        ),
        (f"{DIED}\n", 1, DIED),
        ("", 0, "the output ends before it"),
        ("neither of these\n", 0, "neither of these"),
    ):
        path.write_text(printed)
        row = only(kafka_load.read(path)["producers"])
        assert row.n_errors == n and row.error.startswith("no summary: ") and row.error.endswith(why)
    with pytest.raises(RawDataError, match="a file that can be read"):
        kafka_load.read(tmp_path / "none.txt")


def test_a_second_run_in_a_file_is_refused():
    with pytest.raises(RawDataError, match="one run of the tool in a file"):
        read(WINDOW, SUMMARY, WINDOW, SUMMARY)
