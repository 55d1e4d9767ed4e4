"""ping: lines, counts and files that are refused, alike on the fast path and the careful one."""

import random
import re

import pytest
from ping_logs import FOLDER, HEADER, a_log, outcome
from reading import read_echoes

from wanbench.errors import RawDataError
from wanbench.read.ingest import ping
from wanbench.read.ingest.ping import scan

pytestmark = pytest.mark.usefixtures("short_logs_are_recognised")


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
    log = (FOLDER / "handmade-windows_ipv6.txt").read_bytes().replace(b"\r\n", b"\n")
    lines = log.split(b"\n")
    lines.insert(3, b"64 bytes from 198.51.100.7: icmp_seq=1 ttl=57 time=1.0 ms")
    for fast in (False, True):
        with pytest.raises(RawDataError, match="a line of ping in English") as error:
            read_echoes(b"\n".join(lines), fast=fast)
        assert error.value.line_number == 4


@pytest.mark.parametrize("stamp", [b"[1795262057.495323] ", b""])
def test_every_single_change_of_a_line_reads_the_same_on_both_paths(stamp):
    plain = [stamp + b"64 bytes from ::1: icmp_seq=%d ttl=64 time=0.%03d ms" % (n, n) for n in (9, 10, 11, 12)]
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
        for where, before in ((reply + log, b""), (log + reply + reply, log), (log + b"Done.\n" + reply, log + b"\n")):
            with pytest.raises(RawDataError, match="expected a header of ping in English") as error:
                read_echoes(where, fast=fast)
            assert error.value.line_number == before.count(b"\n") + 1


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"(\d+) packets transmitted", "3 packets transmitted", r"at least \d+ transmitted|a loss that fits"),
        (r"(\d+) received", "7 received", r"\d+ received"),
        (r"received, ", "received, +900 duplicates, ", r"\d+ duplicates"),
        (r"[\d.]+% packet loss", "77% packet loss", r"a loss that fits \d+ received out of 80"),
        (r"80 packets transmitted, \d+ received.*%", "9000000000 packets transmitted, 0 received, 100%", "at most"),
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
    lines = [b"64 bytes from 198.51.100.7: icmp_seq=%d ttl=57 time=1.0 ms\n" % (n * 30000 % 65536) for n in range(9)]
    with pytest.raises(RawDataError, match="at most 100,000 echoes without a line") as error:
        read_echoes(HEADER + b"".join(lines[1:]))
    assert error.value.line_number == 5


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
