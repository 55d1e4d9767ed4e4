"""ping: rows of logs whose truth is known, on the fast path and the careful one."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from ping_logs import FOLDER, HEADER, a_log
from reading import read_echoes

from wanbench.read.ingest import ping
from wanbench.read.ingest.ping import echoes, scan
from wanbench.read.ingest.ping.lines import WITHOUT_CARRY
from wanbench.read.ingest.rows import core as core_columns

pytestmark = pytest.mark.usefixtures("short_logs_are_recognised")


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_the_truth_however_the_log_is_cut(seed, monkeypatch):
    log, truth = a_log(200 + 19 * seed, seed, stamped=seed % 3 > 0, footer=seed % 4 > 0, name=seed % 5 == 0)
    pd.testing.assert_frame_equal(read_echoes(log, fast=False), truth)
    pd.testing.assert_frame_equal(read_echoes(log, fast=True), truth)
    monkeypatch.setattr(scan, "CHUNK_BYTES", 700 + 300 * seed)
    monkeypatch.setattr(echoes, "WINDOW", 150)
    pd.testing.assert_frame_equal(read_echoes(log, fast=False), truth)
    pd.testing.assert_frame_equal(read_echoes(log, fast=True), truth)


def test_sequences_are_carried_on_past_65535(tmp_path):
    log, truth = a_log(140_000, 7)
    assert truth.sequence.max() == 140_000 and b"icmp_seq=0 " in log
    (tmp_path / "long.txt").write_bytes(log)
    pd.testing.assert_frame_equal(read_echoes(tmp_path / "long.txt"), truth)
    assert ping.convert(tmp_path / "long.txt", tmp_path / "long.parquet") == len(truth)
    arrow = pq.read_table(tmp_path / "long.parquet")
    frame = arrow.to_pandas()
    for column in core_columns("echoes"):
        assert arrow.schema.field(column.name) == column.arrow_field()
        assert arrow.schema.field(column.name).metadata == column.arrow_field().metadata
        pd.testing.assert_series_equal(frame[column.name].astype(column.dtype), truth[column.name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.parquet", "long.txt"]


def test_damage_is_the_last_replys_however_the_log_is_cut(monkeypatch):
    replies = b"".join(b"64 bytes from ::1: icmp_seq=%d ttl=64 time=0.1 ms\n" % n for n in range(1, 9))
    log = HEADER + replies + b"wrong data byte #16 should be 0x10 but was 0x0"
    for size in range(100, 600, 20):
        monkeypatch.setattr(scan, "CHUNK_BYTES", size)
        for fast in (False, True):
            assert read_echoes(log, fast=fast).error.notna().tolist() == [False] * 7 + [True]


def test_a_killed_log_has_no_rows_after_its_end():
    log, truth = a_log(100, 5, footer=False)
    pd.testing.assert_frame_equal(read_echoes(log), truth)
    facts = ["sequence", "rtt_ms", "received_at_s", "ttl", "responder", "duplicate", "lost"]

    def known(log):
        replies = [row for row in ping.read(log)["echoes"].to_pylist() if not row["lost"]]
        return {tuple(row[fact] for fact in facts) for row in replies}

    whole = known(log)
    assert len(whole) == (~truth.lost).sum() > 90
    for cut in range(len(log) - 120, len(log)):
        assert known(log[:cut]) <= whole, f"cut at {cut}"


def test_carriage_returns_do_not_matter():
    log, truth = a_log(300, 2)
    for fast in (False, True):
        pd.testing.assert_frame_equal(read_echoes(log.replace(b"\n", b"\r\n"), fast=fast), truth)


def test_the_bell_of_an_audible_ping_does_not_matter():
    log = b"PING 192.0.2.7 (192.0.2.7): 56 data bytes\n" + b"64 bytes from 192.0.2.7: seq=0 ttl=60 time=7.5 ms\a\n"
    assert read_echoes(log).rtt_ms.tolist() == [7.5]


def test_windows_about_large_packets():
    log = (
        b"Pinging 192.0.2.7 with 1472 bytes of data:\r\nPacket needs to be fragmented but DF set.\r\n"
        b"Reply from 192.0.2.7: bytes=68 (sent 1472) time=9ms TTL=60\r\n"
    )
    rows = read_echoes(log)
    assert rows.lost.tolist() == [True, False] and (rows.rtt_ms[1], rows.reply_bytes[1]) == (9, 68)


def test_numbers_are_read_as_python_reads_them():
    rng = np.random.default_rng(5)
    rtts = [
        f"{value:.{digits}f}" for value, digits in zip(rng.gamma(1, 50, 4000), rng.integers(0, 7, 4000), strict=True)
    ]
    rtts = ["1" if float(rtt) == 0 or WITHOUT_CARRY.fullmatch(rtt) else rtt for rtt in rtts]
    stamps = [f"{value:.6f}" for value in rng.uniform(0, 2e9, 4000)]
    lines = [
        f"[{stamp}] 64 bytes from ::1: icmp_seq={n} ttl=64 time={rtt} ms\n"
        for n, (stamp, rtt) in enumerate(zip(stamps, rtts, strict=True), 1)
    ]
    core = read_echoes(HEADER + "".join(lines).encode(), fast=True)
    assert core.rtt_ms.tolist() == [float(rtt) for rtt in rtts]
    assert core.received_at_s.tolist() == [float(stamp) for stamp in stamps]


def test_the_log_of_the_benchmark_is_read_whole(tmp_path):
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "ingest.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_ingest", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    rows = benchmark.make_log(tmp_path / "log.txt", 20_000)["rows"]
    assert benchmark.convert(tmp_path / "log.txt")["rows"] == rows > 20_000


@pytest.mark.parametrize("before", ["Jan 05 10:00:00 ", "2026-01-05 10:00:00: ", "    ", "\t"])
@pytest.mark.parametrize(
    "sample",
    [path for path in sorted(FOLDER.glob("*.csv")) if not re.search("prefix|utf16", path.stem)],
    ids=lambda path: path.stem,
)
def test_what_a_script_puts_before_each_line_changes_no_row(sample, before):
    text = sample.with_suffix(".txt").read_bytes()
    prefixed = b"".join(before.encode() + line for line in text.splitlines(keepends=True))
    for fast in (False, True):
        pd.testing.assert_frame_equal(read_echoes(prefixed, fast=fast), read_echoes(text))
