"""Recorded output of Kafka's perf tools, read whole; and what others have published of theirs, in detail."""

from pathlib import Path

import pandas as pd
import pytest
from reading import tools

from wanbench import tables
from wanbench.folders import root
from wanbench.read import ingest
from wanbench.read.ingest import kafka_load

FOLDER = Path(__file__).parent / "samples" / "kafka_perf"
SAMPLES = sorted(FOLDER.glob("*.txt"))
SHARED = root().parent / "shared/data/kafka_perf"
MIB_S = 8 * 2**20


def expected(path, name):
    """The columns of a table that its CSV has, exact."""
    given = pd.read_csv(path, dtype={column.name: column.dtype for column in tables.table(name).columns})
    columns = [column for column in tables.table(name).columns if column.name in given]
    given = given.fillna({column.name: "" for column in columns if column.type == "text" and not column.nullable})
    return pd.DataFrame({column.name: column.check(given[column.name], name) for column in columns})


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(sample):
    found = kafka_load.read(sample)
    parts = {path.name.split(".")[-2]: path for path in FOLDER.glob(f"{sample.stem}.*.csv")}
    assert set(parts) == {name for name, frame in found.items() if len(frame)}
    for name, path in parts.items():
        known = expected(path, name)
        pd.testing.assert_frame_equal(found[name][list(known)], known, check_dtype=False, rtol=1e-12)
        assert found[name].drop(columns=list(known)).isna().all(axis=None)


def test_samples_hold_what_matters():
    names = " ".join(path.stem for path in SAMPLES)
    for what in ("warmup", "print-metrics", "killed", "_de", "_ar", "detailed", "date-format", "refused"):
        assert what in names


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_the_tool_is_told_by_its_output(sample):
    assert tools(sample) == (sample.stem.split("_")[1],)


def test_the_same_by_hand():
    """Figures of the recorded files in plain notation, taken apart by their spaces alone."""
    fields = (FOLDER / "v4.3.1_producer_plain.txt").read_text().splitlines()[-1].split()
    row = kafka_load.read(FOLDER / "v4.3.1_producer_plain.txt")["producers"].iloc[0]
    assert (row.records, row.records_per_s) == (int(fields[0]), float(fields[3]))
    assert row.throughput_bps == float(fields[5].lstrip("(")) * MIB_S
    assert (row.mean_latency_ms, row.max_latency_ms) == (float(fields[7]), float(fields[11]))
    assert (row.p50_latency_ms, row.p999_latency_ms) == (float(fields[15]), float(fields[24]))
    text = (FOLDER / "v4.3.1_producer_print-metrics.txt").read_text().splitlines()
    metrics = kafka_load.read(FOLDER / "v4.3.1_producer_print-metrics.txt")["metrics"]
    values = [line.rpartition(" : ")[2] for line in text if ":{" in line]
    numbers = [float(value) for value in values if value.replace(".", "", 1).lstrip("-").isdigit()]
    assert metrics.value.tolist() == numbers and len(numbers) > 80


shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not next to the checkout")


def only(name, table):
    found = kafka_load.read(SHARED / name)
    assert len(found[table]) == 1
    return found[table].iloc[0], found


@shared
def test_shared_throttled_producer():
    row, found = only("producer_2.7.0_throttled_2000rps.txt", "producers")
    assert (row.records, row.records_per_s, row.mean_latency_ms, row.max_latency_ms) == (100_000, 1999.60008, 3.22, 432)
    assert row[["p50_latency_ms", "p95_latency_ms", "p99_latency_ms", "p999_latency_ms"]].tolist() == [0, 1, 108, 390]
    assert row.throughput_bps == pytest.approx(1.91 * MIB_S) and (row.n_errors, row.warmup) == (0, False)
    windows = found["producer_windows"]
    assert windows.records.tolist() == [9998, 10008, 10004, 10002, 10002, 10002, 10002, 9998, 10000]
    assert windows.records_per_s.tolist() == [1999.6, 2001.2, 2000.4, 2000.4, 2000, 2000.4, 2000.4, 1999.6, 2000]
    assert windows.mean_latency_ms.tolist() == [28.5, 0.6, 0.6, 0.4, 0.4, 0.3, 0.3, 0.4, 0.4]
    assert windows.max_latency_ms.tolist() == [432, 14, 32, 7, 13, 5, 6, 10, 26]
    assert windows.length_s.between(4.999, 5.002).all() and windows.warmup.isna().all()
    assert windows.records.sum() < row.records


@shared
def test_shared_producer_of_ten_million():
    row, found = only("producer_and_consumer_10M_acks1.txt", "producers")
    assert (row.records, row.records_per_s, row.p99_latency_ms, row.p999_latency_ms) == (10**7, 269578.110257, 30, 116)
    assert row.throughput_bps == pytest.approx(25.71 * MIB_S) and found["producer_windows"].empty
    assert tools(SHARED / "producer_and_consumer_10M_acks1.txt") == ("producer",)


@shared
def test_shared_producer_in_another_locale():
    row, _ = only("producer_locale_comma_windows.txt", "producers")
    assert (row.records, row.records_per_s, row.mean_latency_ms, row.max_latency_ms) == (
        100_000,
        9986.019573,
        1.66,
        230,
    )
    assert row.throughput_bps == pytest.approx(9.52 * MIB_S) and (row.n_errors, row.p99_latency_ms) == (0, 30)


@shared
def test_shared_producer_among_errors():
    row, found = only("producer_errors_interleaved_not_enough_replicas.txt", "producers")
    window = found["producer_windows"].iloc[0]
    assert (window.records, window.records_per_s, window.length_s, window.max_latency_ms) == (6, 0.8, 7.5, 6632)
    assert pd.isna(row.records) and row.n_errors == 3
    assert row.error.startswith(
        "no summary: org.apache.kafka.common.errors.InvalidRequiredAcksException: Produce request"
    )


@shared
def test_shared_consumer():
    row, found = only("consumer_10col_2022-08-01.txt", "consumers")
    assert (row.records, row.records_per_s, row.duration_s) == (20_079, 62357.1429, 0.322)
    assert row.bytes == pytest.approx(19.15 * 2**20)
    assert row.throughput_bps == pytest.approx(59.4722 * MIB_S)
    assert row.n_errors == 0 and found["consumer_windows"].empty


@shared
def test_all_shared_files_make_tables():
    files = sorted(SHARED.glob("*.txt"))
    found = ingest.read_files(files, "kafka_load")
    assert len(files) >= 5 and found["unread"].empty
    assert len(found["producers"]) == 4 and len(found["consumers"]) == 1 and len(found["producer_windows"]) == 10


def test_files_that_some_other_script_left(tmp_path):
    bad = tmp_path / "notes.txt"
    bad.write_text("nothing of the kind\n")
    found = ingest.read_files([*SAMPLES, bad], "kafka_load")
    assert found["unread"].path.tolist() == [str(bad)] and found["unread"].line_number.tolist() == [1]
    assert found["producers"].source_file.nunique() == 10 and found["consumers"].source_file.nunique() == 6
    assert found["producers"].run_id.isna().all()
