"""ping: every sample, logs whose truth is known, and the fast path against the careful one."""

import importlib.util
import json
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from reading import read_echoes

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.ingest import ping
from wanbench.ingest.ping import echoes, plain_lines, scan
from wanbench.ingest.ping.footer_times import WITHOUT_CARRY
from wanbench.ingest.rows import core as core_columns

SAMPLES = sorted((Path(__file__).parent / "samples" / "ping").glob("*.txt"))
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "ping"
HEADER = b"PING 198.51.100.7 (198.51.100.7) 56(84) bytes of data.\n"


def as_table(core):
    """The core columns as a whole table echoes, checked."""
    return tables.validate(
        "echoes",
        tables.from_rows("echoes", [])
        .reindex(core.index)
        .assign(source_file="a.txt", **{name: core[name] for name in core.columns}),
    )


@pytest.fixture(autouse=True)
def recognise_in_short_files_too(monkeypatch):
    monkeypatch.setattr(plain_lines, "MIN_LINES", 1)


def outcome(source, **options):
    """The rows, or the message of the refusal."""
    try:
        return ping.read(source, **options)["echoes"].to_pylist()
    except RawDataError as error:
        return str(error)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(sample, fast):
    refused = sample.with_suffix(".refused")
    if refused.exists():
        line_number, expected = refused.read_text().rstrip("\n").split("\n")
        with pytest.raises(RawDataError) as error:
            read_echoes(sample, fast=fast)
        assert (str(error.value.line_number), error.value.expected) == (line_number, expected)
        assert error.value.path == str(sample)
        return
    core = read_echoes(sample, fast=fast)
    columns = {column.name: column.dtype for column in core_columns("echoes")}
    expected = pd.read_csv(sample.with_suffix(".csv"), dtype=columns)
    pd.testing.assert_frame_equal(core, expected, check_exact=True)
    as_table(core)


def test_every_dialect_has_samples():
    names = " ".join(path.stem for path in SAMPLES)
    for dialect in (
        "iputils-",
        "busybox-",
        "toybox-",
        "fping-",
        "macos_",
        "freebsd_",
        "inetutils_",
        "windows_",
        "ipv6",
    ):
        assert dialect in names


@pytest.mark.parametrize(
    ("name", "rows", "lost", "duplicates", "minimum", "mean", "maximum", "unit"),
    [
        ("alpine-linux-3.13_ping-ip", 1, 0, 0, 1.637, 1.637, 1.637, 0.001),
        ("centos-7.7_ping-ip-O-D", 20, 0, 0, 0.041, 0.048, 0.081, 0.001),
        ("centos-7.7_ping-missing-hostname", 1, 0, 0, 0.040, 0.040, 0.040, 0.001),
        ("freebsd12_ping-ip-p", 3, 0, 0, 0.034, 0.037, 0.042, 0.001),
        ("osx-10.14.6_ping-ip-dup", 15, 0, 13, 0.235, 226.389, 1084.262, 0.001),
        ("ubuntu-18.04_ping6-ip-O-D-p", 20, 5, 0, 21.405, 45.041, 159.380, 0.5),
        ("ubuntu-22.04_ping-dest-unreachable", 3, 3, 0, None, None, None, 0),
    ],
)
def test_shared_files(name, rows, lost, duplicates, minimum, mean, maximum, unit):
    """Counts and times as the footers say; `unit` is what the lines were rounded to."""
    path = SHARED / f"{name}.out"
    if not path.exists():
        pytest.skip("the shared data is not here")
    core = read_echoes(path)
    assert (len(core), core.lost.sum(), core.duplicate.sum()) == (rows, lost, duplicates)
    peer = json.loads(path.with_suffix(".json").read_text())["responses"]
    replies = [reply for reply in peer if reply["type"] == "reply"]
    rtts = sorted(core.rtt_ms.dropna())
    assert rtts == sorted(reply["time_ms"] for reply in replies)
    assert sorted(core.sequence[~core.lost]) == sorted(reply["icmp_seq"] for reply in replies)
    times = [reply["timestamp"] for reply in peer if reply.get("timestamp")]
    assert sorted(core.received_at_s.dropna()) == sorted(times)
    if minimum is not None:
        found = (core.rtt_ms.min(), core.rtt_ms.mean(), core.rtt_ms.max())
        assert found == pytest.approx((minimum, mean, maximum), abs=unit)
    else:
        assert core.error.tolist() == ["Destination Host Unreachable"] * 3
        assert core.responder.tolist() == ["10.0.0.1"] * 3


def test_all_shared_files_are_tested():
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    marks = test_shared_files.pytestmark[0].args[1]
    assert {case[0] for case in marks} == {path.stem for path in SHARED.glob("*.out")}


def a_log(echoes, seed, *, first=1, stamped=True, footer=True, name=False, lateness=40):
    """A log with losses, silences, duplicates, late replies and reports, and the rows that it must give."""
    rng = random.Random(seed)
    lines, rows = [], []
    loss = rng.choice([0, 0.001, 0.05, 0.3])

    def say(time, text):
        lines.append((time, f"[{1.7e9 + time:.6f}] {text}" if stamped else text))
        return 1.7e9 + time if stamped else float("nan")

    for echo in range(first, first + echoes):
        sent, printed = echo * 0.01, echo % 65536
        who = rng.choice(["198.51.100.7"] * 9 + ["198.51.100.8"])
        shown = f"host.example.org ({who})" if name else who
        ttl = rng.choice([57] * 30 + [56, 255])
        reply = f"64 bytes from {shown}: icmp_seq={printed} ttl={ttl} time="
        kind = rng.random()
        row = {
            "ping": 0,
            "target": "198.51.100.7",
            "sequence": echo,
            "lost": False,
            "duplicate": False,
            "ttl": ttl,
            "reply_bytes": 64,
            "responder": who,
        }
        unknown = {"ttl": None, "reply_bytes": None, "responder": None}
        if kind < loss:
            row |= unknown | {"lost": True}
            if rng.random() < 0.4:
                at = say(sent + 0.0101, f"no answer yet for icmp_seq={printed}")
                row |= {"error": "no answer yet", "received_at_s": at}
            elif rng.random() < 0.2:
                at = say(sent + 0.002, f"From 192.0.2.1 icmp_seq={printed} Destination Host Unreachable")
                row |= {
                    "error": "Destination Host Unreachable",
                    "received_at_s": at,
                    "responder": "192.0.2.1",
                }
            rows.append(row)
            continue
        rtt_ms = round(rng.uniform(0.05, 9), 3)
        if kind < loss + 0.02:
            say(sent + 0.0101, f"no answer yet for icmp_seq={printed}")
            rtt_ms = float(round(rng.uniform(11, lateness * 10)))
            row["error"] = "no answer yet"
        row["rtt_ms"] = rtt_ms
        row["received_at_s"] = say(sent + rtt_ms / 1000, f"{reply}{rtt_ms:g} ms")
        rows.append(row)
        for _ in range(rng.choice([0] * 97 + [1, 1, 2])):
            rtt_ms = float(round(rtt_ms + rng.uniform(1, lateness * 10)))
            at = say(sent + rtt_ms / 1000, f"{reply}{rtt_ms:g} ms (DUP!)")
            rows.append(row | {"rtt_ms": rtt_ms, "received_at_s": at, "duplicate": True, "error": None})
    lines.sort(key=lambda line: line[0])
    log = HEADER + "".join(text + "\n" for _, text in lines).encode()
    truth = pd.DataFrame(rows, columns=[column.name for column in core_columns("echoes")])
    if footer:
        received = int((~truth.lost & ~truth.duplicate).sum())
        again = f"+{truth.duplicate.sum()} duplicates, " if truth.duplicate.any() else ""
        share = f"{100 * (echoes - received) / echoes:g}%"
        counts = f"{echoes} packets transmitted, {received} received, {again}{share} packet loss, time 9ms"
        log += f"\n--- 198.51.100.7 ping statistics ---\n{counts}\n".encode()
    else:
        shown = {int(text.split("icmp_seq=")[1].split()[0]) for _, text in lines}
        truth = truth[truth.sequence <= max(shown, default=first - 1)]
    truth = pd.DataFrame(
        {column.name: truth[column.name].astype(column.dtype) for column in core_columns("echoes")}
    )
    return log, truth.reset_index(drop=True)


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


@pytest.mark.parametrize("seed", range(20))
def test_a_bad_line_is_refused_with_its_number_on_both_paths(seed, monkeypatch):
    rng = random.Random(seed)
    log, _ = a_log(900, seed)
    lines = log.split(b"\n")
    at = rng.randrange(1, len(lines) - 4)
    bad = [
        b"64 bytes from 198.51.100.7: icmp_seq=70000 ttl=57 time=1.0 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=257 time=1.0 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=1e3 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=-1.0 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=nan ms",
        b"64 bytes from 198.51.100.7: icmp_seq=+9 ttl=57 time=1.0 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=1. ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=1.0 ms!",
        b"[nan] 64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=1.0 ms",
        b"64 bytes from 198.51.100.7: icmp_seq=9 ttl=57 time=1.0 \xff ms",
        b"64 bytes from 198.51.100.7: icmp_seq=40000 ttl=57 time=1.0 ms",
        "64 bytes from 198.51.100.7: icmp_seq=٩ ttl=57 time=1.0 ms".encode(),
        b"x" * 5000,
        b"\x00",
    ]
    lines.insert(at, bad[seed % len(bad)])
    monkeypatch.setattr(scan, "CHUNK_BYTES", 4000)
    for fast in (False, True):
        with pytest.raises(RawDataError) as error:
            read_echoes(b"\n".join(lines), fast=fast)
        assert error.value.line_number == at + 1


def test_a_reply_of_another_dialect_is_refused_on_both_paths():
    log = (SAMPLES[0].parent / "handmade-windows_ipv6.txt").read_bytes().replace(b"\r\n", b"\n")
    lines = log.split(b"\n")
    lines.insert(3, b"64 bytes from 198.51.100.7: icmp_seq=1 ttl=57 time=1.0 ms")
    for fast in (False, True):
        with pytest.raises(RawDataError, match="a line of ping in English") as error:
            read_echoes(b"\n".join(lines), fast=fast)
        assert error.value.line_number == 4


def test_damage_is_the_last_replys_however_the_log_is_cut(monkeypatch):
    replies = b"".join(b"64 bytes from ::1: icmp_seq=%d ttl=64 time=0.1 ms\n" % n for n in range(1, 9))
    log = HEADER + replies + b"wrong data byte #16 should be 0x10 but was 0x0"
    for size in range(100, 600, 20):
        monkeypatch.setattr(scan, "CHUNK_BYTES", size)
        for fast in (False, True):
            assert read_echoes(log, fast=fast).error.notna().tolist() == [False] * 7 + [True]


@pytest.mark.parametrize("stamp", [b"[1795262057.495323] ", b""])
def test_every_single_change_of_a_line_reads_the_same_on_both_paths(stamp):
    plain = [
        stamp + b"64 bytes from ::1: icmp_seq=%d ttl=64 time=0.%03d ms" % (n, n) for n in (9, 10, 11, 12)
    ]
    line = plain[2]
    for at in range(len(line)):
        for new in (b"", b"0", b"+", b"-", b"e", b".", b" ", b"\r", b"x"):
            changed = line[:at] + new + line[at + 1 :]
            log = HEADER + b"\n".join([*plain[:2], changed, plain[3]]) + b"\n"
            assert outcome(log, fast=False) == outcome(log, fast=True), changed


def test_echoes_before_the_header_or_after_the_footer_are_refused_on_both_paths():
    log, _ = a_log(50, 3)
    reply = b"64 bytes from 198.51.100.7: icmp_seq=50 ttl=57 time=1.0 ms\n"
    for fast in (False, True):
        for where, before in (
            (reply + log, b""),
            (log + reply + reply, log),
            (log + b"Done.\n" + reply, log + b"\n"),
        ):
            with pytest.raises(RawDataError, match="expected a header of ping in English") as error:
                read_echoes(where, fast=fast)
            assert error.value.line_number == before.count(b"\n") + 1


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"(\d+) packets transmitted", "3 packets transmitted", r"at least \d+ transmitted|the loss of"),
        (r"(\d+) received", "7 received", r"\d+ received"),
        (r"received, ", "received, +900 duplicates, ", r"\d+ duplicates"),
        (r"[\d.]+% packet loss", "77% packet loss", r"the loss of \d+ received out of 80"),
        (
            r"80 packets transmitted, \d+ received.*%",
            "9000000000 packets transmitted, 0 received, 100%",
            "at most",
        ),
    ],
)
def test_counts_that_contradict_the_lines_are_refused(old, new, message, fast):
    log, _ = a_log(80, 11)
    changed = re.sub(old, new, log.decode()).encode()
    assert changed != log
    with pytest.raises(RawDataError, match=message) as error:
        read_echoes(changed, fast=fast)
    assert error.value.line_number == log.count(b"\n")


def test_a_few_lines_cannot_claim_millions_of_echoes():
    lines = [
        b"64 bytes from 198.51.100.7: icmp_seq=%d ttl=57 time=1.0 ms\n" % (n * 30000 % 65536)
        for n in range(9)
    ]
    with pytest.raises(RawDataError, match="at most 100,000 echoes that no line shows") as error:
        read_echoes(HEADER + b"".join(lines[1:]))
    assert error.value.line_number == 5


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


def test_every_cut_of_every_sample_ends_in_a_table_or_a_refusal():
    for sample in SAMPLES:
        data = sample.read_bytes()
        for cut in range(0, len(data), 97):
            careful, fast = outcome(data[:cut], fast=False), outcome(data[:cut], fast=True)
            assert careful == fast


def test_carriage_returns_do_not_matter():
    log, truth = a_log(300, 2)
    for fast in (False, True):
        pd.testing.assert_frame_equal(read_echoes(log.replace(b"\n", b"\r\n"), fast=fast), truth)


def test_the_bell_of_an_audible_ping_does_not_matter():
    log = (
        b"PING 192.0.2.7 (192.0.2.7): 56 data bytes\n"
        + b"64 bytes from 192.0.2.7: seq=0 ttl=60 time=7.5 ms\a\n"
    )
    assert read_echoes(log).rtt_ms.tolist() == [7.5]


def test_windows_about_large_packets():
    log = (
        b"Pinging 192.0.2.7 with 1472 bytes of data:\r\nPacket needs to be fragmented but DF set.\r\n"
        b"Reply from 192.0.2.7: bytes=68 (sent 1472) time=9ms TTL=60\r\n"
    )
    rows = read_echoes(log)
    assert rows.lost.tolist() == [True, False] and (rows.rtt_ms[1], rows.reply_bytes[1]) == (9, 68)


def test_lines_in_english_are_not_called_another_language():
    with pytest.raises(RawDataError, match="a header of ping in English"):
        read_echoes(b"10:00:01 PING\n10:00:02 64 bytes from 192.0.2.7: icmp_seq=1 ttl=60 time=7.5 ms\n")
    with pytest.raises(RawDataError, match="LC_ALL=C"):
        read_echoes(b"64 octets de 192.0.2.7 : icmp_seq=1 ttl=60 temps=7.5 ms\n")


def test_convert_leaves_nothing_behind_when_it_refuses(tmp_path):
    log, _ = a_log(3000, 4)
    (tmp_path / "log.txt").write_bytes(log + b"64 bytes from 198.51.100.7: icmp_seq=1 ttl=57 time=1.0 ms\n")
    (tmp_path / "log.parquet").write_bytes(b"old")
    with pytest.raises(RawDataError, match="a header of ping in English"):
        ping.convert(tmp_path / "log.txt", tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(RawDataError, match="expected a file that can be read, found 'No such file"):
        read_echoes(tmp_path / "none.txt")
    with pytest.raises(RawDataError, match="expected a file that can be read, found 'Is a directory'"):
        read_echoes(tmp_path)


def test_numbers_are_read_as_python_reads_them():
    rng = np.random.default_rng(5)
    rtts = [
        f"{value:.{digits}f}"
        for value, digits in zip(rng.gamma(1, 50, 4000), rng.integers(0, 7, 4000), strict=True)
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
