"""kafka-consumer-perf-test: its columns in every number and order that is known, with and without a header."""

import pandas as pd
import pytest
from reading import only, tools
from reading import read_perf_tool as read

from wanbench.read.ingest import kafka_load

MIB = 2**20
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
LINE = (
    "2022-08-01 05:53:11:678, 2022-08-01 05:53:12:000, 19.1500, 59.4722, 20079, 62357.1429, 203, 119, 160.9247, "
    "168731.0924"
)
DETAILED = HEADER.replace("start.time, end.time", "time, threadId")
WINDOW = "2022-08-01 05:53:11:678, 0, 9.5000, 59.4722, 10000, 62357.1429, 203, 119, 160.9247, 168731.0924"
LATER = "2022-08-01 05:53:12:000, 0, 19.1500, 28.4000, 20079, 31000.0000, 0, 340, 28.4000, 31000.0000"
WARN = "WARNING: Exiting before consuming the expected number of messages: timeout (1000 ms) exceeded."


def short(line, fields):
    return ", ".join(line.split(", ")[:fields])


@pytest.mark.parametrize("header", [True, False])
def test_ten_columns(header):
    found = read(*[HEADER] * header, LINE)
    row = only(found["consumers"])
    assert (row.consumer, row.records, row.n_errors) == (0, 20_079, 0) and pd.isna(row.error) and pd.isna(row.group)
    assert (row.started_at, row.ended_at) == ("2022-08-01 05:53:11:678", "2022-08-01 05:53:12:000")
    assert (row.duration_s, row.rebalance_ms, row.fetch_ms, row.records_per_s) == (0.322, 203, 119, 62357.1429)
    assert row.bytes == pytest.approx(19.15 * MIB) and row.throughput_bps == pytest.approx(8 * 59.4722 * MIB)
    assert row.fetch_throughput_bps == pytest.approx(8 * 160.9247 * MIB)
    assert found["consumer_windows"].empty and found["metrics"].empty


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("fields", [6, 8])
def test_fewer_columns(fields, header):
    row = only(read(*[short(HEADER, fields)] * header, short(LINE, fields))["consumers"])
    assert (row.records, row.duration_s, row.records_per_s) == (20_079, 0.322, 62357.1429)
    assert pd.isna(row.fetch_throughput_bps) and pd.isna(row.rebalance_ms) == (fields == 6)


def test_eight_columns_without_times():
    header, line = (", ".join(each.split(", ")[2:]) for each in (HEADER, LINE))
    row = only(read(header, line)["consumers"])
    assert (row.records, row.rebalance_ms, row.duration_s) == (20_079, 203, 0.322) and pd.isna(row.started_at)


def test_columns_in_another_order_go_by_the_header():
    header = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    line = "2025-08-01 05:53:11:678, 2025-08-01 05:53:12:000, 19.1500, 59.4722, 62357.1429, 20079, 119"
    row = only(read(header, line)["consumers"])
    assert (row.records, row.records_per_s, row.fetch_ms, row.duration_s) == (20_079, 62357.1429, 119, 0.322)
    old = short(HEADER, 6).replace("end.time, ", "end.time, fetch.size, ")
    row = only(read(old, short(LINE, 6).replace("12:000, ", "12:000, 1048576, "))["consumers"])
    assert (row.records, row.bytes) == (20_079, pytest.approx(19.15 * MIB))


@pytest.mark.parametrize("header", [True, False])
def test_members_of_a_share_group_do_not_count_beside_the_group(header):
    names = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    times = "2026-01-05 10:00:00:000, 2026-01-05 10:00:04:000"
    one, other = f"{times}, 4.0000, 1.0000, 10.0000, 40, 4000", f"{times}, 8.0000, 2.0000, 20.0000, 80, 4000"
    members = [f"{one} for share consumer 1", f"{other} for share consumer 2"]
    members += [f"Share consumer 1 consumption metrics- {one}", f"Share consumer 2 consumption metrics- {other}"]
    group = f"{times}, 12.0000, 3.0000, 30.0000, 120, 4000"
    row = only(read(*[names] * header, *members, group)["consumers"])
    assert (row.records, row.records_per_s, row.fetch_ms, row.n_errors) == (120, 30, 4000, 0)
    row = only(read(*[names] * header, *members)["consumers"])
    assert pd.isna(row.records) and row.error == "no summary: the output ends before it"


def test_decimal_commas_and_groups():
    for line in (
        LINE.replace(".", ","),
        LINE.replace("62357.1429", "62,357.1429").replace("20079", "20,079"),
        LINE.replace(".", ",").replace("62357", "62.357").replace("20079", "20.079"),
    ):
        row = only(read(HEADER, line)["consumers"])
        assert (row.records, row.records_per_s, row.error) == (20_079, 62357.1429, None) or pd.isna(row.error)
        assert row.bytes == pytest.approx(19.15 * MIB) and row.duration_s == 0.322


def test_the_epoch_among_the_times():
    line = (
        "2021-01-14 00:16:22:058, 2021-01-14 00:16:24:481, 95.6802, 39.4883, 100328, 41406.5208, 1610554583317, "
        "-1610554580894, -0.0000, -0.0001"
    )
    row = only(read(HEADER, line)["consumers"])
    assert row[["rebalance_ms", "fetch_ms", "fetch_throughput_bps"]].isna().all() and pd.isna(row.error)
    assert (row.records, row.records_per_s, row.duration_s) == (100_328, 41406.5208, 2.423)
    window = WINDOW.replace("203, 119, 160.9247, 168731.0924", "1610554583317, -1610554582275, 0.0000, 0.0000")
    found = read(DETAILED, window)["consumer_windows"]
    assert pd.isna(only(found).rebalance_ms) and only(found).records == 10_000


def test_the_duration_is_what_fits_the_rate():
    doctored = LINE.replace("2022-08-01 05:53:12:000", "2022-09-01 05:53:12:000")
    assert only(read(doctored)["consumers"]).duration_s == 0.322
    row = only(read(short(doctored, 6))["consumers"])
    assert pd.isna(row.duration_s) and row.error == "20079 records at 62357.1 records/s do not take 2.6784e+06 s"


@pytest.mark.parametrize(
    "date", ["Sat, 21 Nov 2026 17:59:0{} +0000", "17:59:0{}", "202611211759010{}", "21/11/26 17h0{}"]
)
@pytest.mark.parametrize("header", [True, False])
def test_times_in_any_form(date, header):
    rest = ", ".join(LINE.split(", ")[2:])
    found = read(*[HEADER] * header, f"{date.format(1)}, {date.format(2)}, {rest}")
    row = only(found["consumers"])
    assert (row.started_at, row.ended_at) == (date.format(1), date.format(2))
    assert (row.duration_s, row.records) == (0.322, 20_079)
    rest = ", ".join(WINDOW.split(", ")[1:])
    window = only(read(DETAILED, f"{date.format(1)}, {rest}")["consumer_windows"])
    assert (window["at"], window.records) == (date.format(1), 10_000)


@pytest.mark.parametrize("header", [DETAILED, DETAILED.replace("threadId, ", ""), None])
@pytest.mark.parametrize("fields", [6, 10])
def test_detailed_statistics(header, fields):
    head = [] if header is None else [short(header, fields - header.count("time, data"))]
    found = read(*head, short(WINDOW, fields), short(LATER, fields))
    windows = found["consumer_windows"]
    assert windows["at"].tolist() == ["2022-08-01 05:53:11:678", "2022-08-01 05:53:12:000"]
    assert windows.records.tolist() == [10_000, 20_079] and windows.records_per_s.tolist() == [62357.1429, 31000]
    assert windows.rebalance_ms.fillna(-1).tolist() == ([203, 0] if fields == 10 else [-1, -1])
    row = only(found["consumers"])
    assert (row.records, row.ended_at) == (20_079, "2022-08-01 05:53:12:000") and pd.isna(row.duration_s)
    assert row.error == "no summary with --show-detailed-stats; the records are a lower bound" and row.n_errors == 0


def test_metrics_of_detailed_statistics_may_know_more():
    metric = "consumer-fetch-manager-metrics:records-consumed-total:{client-id=c-1%s} : %s"
    row = only(read(DETAILED, WINDOW, metric % (", topic=t", "9.000"), metric % ("", "15000.000"))["consumers"])
    assert row.records == 15_000 and pd.isna(row.bytes)
    assert only(read(DETAILED, WINDOW, metric % ("", "9000.000"))["consumers"]).records == 10_000


def test_threads_of_old_tools_are_consumers_of_their_own():
    other = WINDOW.replace(", 0, 9.5", ", 1, 9.6").replace("10000", "10001")
    found = read(DETAILED, WINDOW, other, LATER)
    assert found["consumer_windows"].consumer.tolist() == [0, 0, 1]
    assert found["consumers"].records.tolist() == [20_079, 10_001]


def test_warnings_and_what_means_nothing():
    notice = "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test"
    row = only(read(notice, HEADER, WARN, LINE)["consumers"])
    assert (row.n_errors, row.error, row.records) == (1, WARN, 20_079)
    row = only(read(HEADER, WARN)["consumers"])
    assert (row.n_errors, row.error) == (1, f"no summary: {WARN}") and pd.isna(row.records)


def test_words_and_figures_in_one_line():
    row = only(read(f"{WARN}{LINE}java.io.IOException: oh")["consumers"])
    assert (row.records, row.n_errors, row.error) == (20_079, 2, WARN)
    found = read(DETAILED, WINDOW + LATER)
    assert found["consumer_windows"].records.tolist() == [10_000, 20_079]


def test_a_line_cut_anywhere_is_no_figure():
    for end in [*range(10, len(LINE) - 1, 7), *range(len(LINE) - 14, len(LINE) - 1)]:
        row = only(kafka_load.read(f"{HEADER}\n{LINE[:end]}".encode())["consumers"])
        assert pd.isna(row.records) and row.error.startswith("no summary: the output is truncated in "), LINE[:end]
    assert only(kafka_load.read(f"{HEADER}\n{LINE}".encode())["consumers"]).records == 20_079


def test_nothing_consumed():
    line = LINE.replace("19.1500, 59.4722, 20079, 62357.1429", "0.0000, NaN, 0, NaN").replace("160.9247", "Infinity")
    row = only(read(HEADER, line)["consumers"])
    assert (row.records, row.bytes, row.duration_s) == (0, 0, 0.322)
    assert pd.isna(row.records_per_s) and pd.isna(row.throughput_bps) and pd.isna(row.fetch_throughput_bps)


def test_several_outputs_and_a_producer_in_between():
    sent = "9998 records sent, 1999.6 records/sec (1.91 MB/sec), 28.5 ms avg latency, 432.0 ms max latency."
    found = read(HEADER, sent, LINE, sent, HEADER, LINE, "", DETAILED, WINDOW)
    assert found["consumers"].consumer.tolist() == [0, 1, 2] and len(found["consumer_windows"]) == 1
    assert found["consumer_windows"].consumer.tolist() == [2]
    assert len(found["producer_windows"]) == 2
    assert only(found["producers"]).error == "no summary: the output ends before it"
    assert tools(f"{HEADER}\n{sent}\n".encode()) == ("consumer", "producer")


def test_number_and_group_of_a_load(tmp_path):
    path = tmp_path / "0003-a-b.consumer-2-7.txt"
    path.write_text(f"{HEADER}\r\n{LINE}\r\n")
    row = only(kafka_load.read(path)["consumers"])
    assert (row.group, row.consumer) == (2, 7)
    (tmp_path / "0003-a-b.times.json").write_text('{"asked_to_stop_at_s": 5}')
    path.write_text(HEADER)
    assert only(kafka_load.read(path)["consumers"]).error.startswith("no summary: the output ends"), "not stopped"


@pytest.mark.parametrize(
    "line", [LINE.replace("20079", "-20079"), LINE.replace("203", "20.3"), LINE.replace(", 119", "")]
)
def test_figures_that_cannot_be_are_words(line):
    row = only(read(HEADER, line)["consumers"])
    assert pd.isna(row.records) and (row.n_errors, row.error) == (1, f"no summary: {line}")
