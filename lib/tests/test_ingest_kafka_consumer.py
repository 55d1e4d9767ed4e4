"""kafka-consumer-perf-test: its columns in every number and order, by its header."""

import pandas as pd
import pytest
from reading import only
from reading import read_perf_tool as read

from wanbench.errors import RawDataError
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


def named(tmp_path, *lines, end="\n"):
    """The row of a log whose name says that a consumer wrote it."""
    path = tmp_path / "0003-a-b.consumer-2-7.txt"
    path.write_text("\n".join(lines) + end)
    return only(kafka_load.read(path)["consumers"])


def test_ten_columns():
    found = read(HEADER, LINE)
    row = only(found["consumers"])
    assert (row.consumer, row.records, row.n_errors) == (0, 20_079, 0) and pd.isna(row.error) and pd.isna(row.group)
    assert (row.duration_s, row.records_per_s) == (0.322, 62357.1429)
    assert row.bytes == pytest.approx(19.15 * MIB) and row.throughput_bps == pytest.approx(8 * 59.4722 * MIB)
    assert found["consumer_windows"].empty and found["metrics"].empty


def test_columns_in_another_order_go_by_the_header():
    header = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    line = "2025-08-01 05:53:11:678, 2025-08-01 05:53:12:000, 19.1500, 59.4722, 62357.1429, 20079, 119"
    row = only(read(header, line)["consumers"])
    assert (row.records, row.records_per_s) == (20_079, 62357.1429) and pd.isna(row.duration_s)


def test_decimal_commas():
    row = only(read(HEADER, LINE.replace(".", ","))["consumers"])
    assert (row.records, row.records_per_s, row.duration_s) == (20_079, 62357.1429, 0.322)
    assert row.bytes == pytest.approx(19.15 * MIB)


def test_the_epoch_among_the_times():
    line = (
        "2021-01-14 00:16:22:058, 2021-01-14 00:16:24:481, 95.6802, 39.4883, 100328, 41406.5208, 1610554583317, "
        "-1610554580894, -0.0000, -0.0001"
    )
    row = only(read(HEADER, line)["consumers"])
    assert (row.records, row.records_per_s, row.duration_s) == (100_328, 41406.5208, 2.423) and pd.isna(row.error)


@pytest.mark.parametrize(
    "date", ["Sat, 21 Nov 2026 17:59:0{} +0000", "17:59:0{}", "202611211759010{}", "21/11/26 17h0{}"]
)
def test_times_in_any_form(date):
    row = only(read(HEADER, f"{date.format(1)}, {date.format(2)}, {', '.join(LINE.split(', ')[2:])}")["consumers"])
    assert (row.duration_s, row.records) == (0.322, 20_079)
    window = only(read(DETAILED, f"{date.format(1)}, {', '.join(WINDOW.split(', ')[1:])}")["consumer_windows"])
    assert (window["at"], window.records) == (date.format(1), 10_000)


def test_detailed_statistics():
    found = read(DETAILED, WINDOW, LATER)
    windows = found["consumer_windows"]
    assert windows["at"].tolist() == ["2022-08-01 05:53:11:678", "2022-08-01 05:53:12:000"]
    assert windows.records.tolist() == [10_000, 20_079] and windows.records_per_s.tolist() == [62357.1429, 31000]
    row = only(found["consumers"])
    assert row.records == 20_079 and pd.isna(row.duration_s)
    assert row.error == "no summary with --show-detailed-stats; the records are a lower bound" and row.n_errors == 0


def test_metrics_of_detailed_statistics_may_know_more():
    metric = "consumer-fetch-manager-metrics:records-consumed-total:{client-id=c-1%s} : %s"
    row = only(read(DETAILED, WINDOW, metric % (", topic=t", "99999.000"), metric % ("", "15000.000"))["consumers"])
    assert row.records == 15_000 and pd.isna(row.bytes)
    assert only(read(DETAILED, WINDOW, metric % ("", "9000.000"))["consumers"]).records == 10_000


def test_warnings_and_what_means_nothing(tmp_path):
    notice = "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test"
    row = only(read(notice, HEADER, WARN, LINE)["consumers"])
    assert (row.n_errors, row.error, row.records) == (1, WARN, 20_079)
    row = named(tmp_path, HEADER, WARN)
    assert (row.n_errors, row.error) == (1, f"no summary: {WARN}") and pd.isna(row.records)


def test_a_line_cut_anywhere_is_no_figure(tmp_path):
    for end in [*range(10, len(LINE) - 1, 7), *range(len(LINE) - 14, len(LINE) - 1)]:
        row = named(tmp_path, HEADER, LINE[:end], end="")
        assert pd.isna(row.records) and row.error.startswith("no summary: the output is truncated in "), LINE[:end]
    assert named(tmp_path, HEADER, LINE, end="").records == 20_079


def test_nothing_consumed():
    line = LINE.replace("19.1500, 59.4722, 20079, 62357.1429", "0.0000, NaN, 0, NaN").replace("160.9247", "Infinity")
    row = only(read(HEADER, line)["consumers"])
    assert (row.records, row.bytes, row.duration_s) == (0, 0, 0.322)
    assert pd.isna(row.records_per_s) and pd.isna(row.throughput_bps)


def test_a_second_run_in_a_file_is_refused():
    with pytest.raises(RawDataError, match="one run of the tool in a file"):
        read(HEADER, LINE, HEADER, LINE)


def test_number_and_group_of_a_load(tmp_path):
    row = named(tmp_path, f"{HEADER}\r", f"{LINE}\r")
    assert (row.group, row.consumer, row.records) == (2, 7, 20_079)
    (tmp_path / "0003-a-b.times.json").write_text('{"asked_to_stop_at_s": 5}')
    assert named(tmp_path, HEADER).error.startswith("no summary: the output ends"), "not stopped"


@pytest.mark.parametrize(
    "line", [LINE.replace("20079", "-20079"), LINE.replace("203", "20.3"), LINE.replace(", 119", "")]
)
def test_figures_that_cannot_be_are_words(line, tmp_path):
    row = named(tmp_path, HEADER, line)
    assert pd.isna(row.records) and (row.n_errors, row.error) == (1, f"no summary: {line}")
