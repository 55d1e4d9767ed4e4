"""Several pings in one file, other lines around them, and the times of echoes against those of the footer."""

import gzip
import lzma

import pandas as pd
import pyarrow.parquet as pq
import pytest
from ping_logs import FOLDER, a_log
from reading import read_echoes

from wanbench.errors import RawDataError
from wanbench.read.ingest import content, ping
from wanbench.read.ingest.ping import echoes, lines, scan

pytestmark = pytest.mark.usefixtures("short_logs_are_recognised")

HEADER = "PING 198.51.100.7 (198.51.100.7) 56(84) bytes of data.\n"
WORDS = (
    "", "\n", "Sat Nov 21 10:00:01 UTC 2026\n", "user@vm:~$ ping -c 9 198.51.100.7\n", "C:\\>\n",
    "### eu-west-1: größer als 64 bytes ###\nrtt of the last: 12 ms\n", "ping: nowhere: Name or service not known\n",
    "PING from eu to us follows\n",
)  # fmt: skip


def a_ping(*times, footer="", lost=0, header=HEADER):
    """A log of replies with these times, as printed, and a footer if its times are given."""
    replies = "".join(
        f"64 bytes from 198.51.100.7: icmp_seq={n} ttl=57 time={time} ms\n" for n, time in enumerate(times, 1)
    )
    if footer:
        sent = len(times) + lost
        share = f"{100 * lost / sent:g}% packet loss"
        footer = (
            f"\n--- 198.51.100.7 ping statistics ---\n{sent} packets transmitted, {len(times)} received, {share}, "
            f"time 9ms\nrtt min/avg/max/mdev = {footer} ms\n"
        )
    return (header + replies + footer).encode()


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_several_pings_are_the_truth_however_the_file_is_cut(seed, monkeypatch):
    data, truth = b"", []
    for number in range(6):
        log, rows = a_log(30 + 41 * number, 10 * seed + number, stamped=number % 2 > 0, footer=(number + seed) % 3 > 0)
        data += WORDS[(seed + number) % len(WORDS)].encode() + log
        truth.append(rows.assign(ping=number).astype(rows.dtypes.to_dict()))
    truth = pd.concat(truth, ignore_index=True)
    monkeypatch.setattr(echoes, "WINDOW", 150)
    for size in (350, 2000, 1 << 22):
        monkeypatch.setattr(scan, "CHUNK_BYTES", size)
        for fast in (False, True):
            pd.testing.assert_frame_equal(read_echoes(data, fast=fast), truth)


@pytest.mark.parametrize(
    "name", ["iputils-s20180629_no-carry", "iputils_several-with-script", "windows_powershell-utf16"]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_convert_gives_the_same_rows(tmp_path, name, compress):
    (tmp_path / "log.z").write_bytes(compress((FOLDER / f"handmade-{name}.txt").read_bytes()))
    expected = read_echoes(FOLDER / f"handmade-{name}.txt")
    assert ping.convert(tmp_path / "log.z", tmp_path / "log.parquet") == len(expected)
    frame = pq.read_table(tmp_path / "log.parquet").to_pandas()
    pd.testing.assert_frame_equal(frame.astype(expected.dtypes.to_dict()), expected)


@pytest.mark.parametrize(
    ("times", "footer", "rtts"),
    [
        (("60.10", "61.2"), "60.961/61.080/61.199/0.1", [61.0, 61.2]),
        (("60.10", "61.2"), "", [61.0, 61.2]),
        (("1.100", "2.10"), "1.997/2.050/2.103/0.1", [2.0, 2.1]),
        (("9.100", "99.10"), "9.998/54.979/99.960/44.9", [10.0, 100.0]),
        (("59.1", "61.2", "60.10"), "59.103/60.425/61.209/0.9", [59.1, 61.2, 61.0]),
        (("100", "60.1", "1.10", "0.100"), "0.100/40.350/100.204/41.0", [100, 60.1, 1.1, 0.1]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fast", [False, True])
def test_times_that_may_lack_a_carry(times, footer, rtts, fast):
    found = read_echoes(a_ping(*times, footer=footer), fast=fast)
    assert found.rtt_ms.astype(object).where(found.rtt_ms.notna(), None).tolist() == rtts
    changed = [f"time={time} ms" if float(time) != rtt else None for time, rtt in zip(times, rtts, strict=True)]
    assert found.error.astype(object).where(found.error.notna(), None).tolist() == changed


def test_other_tools_print_such_times_as_they_are():
    bsd = "PING 198.51.100.7 (198.51.100.7): 56 data bytes\n"
    assert read_echoes(a_ping("1.100", "10.10", header=bsd)).rtt_ms.dropna().tolist() == [1.1, 10.1]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("times", "footer"),
    [
        (("20.1", "20.3"), "19.134/20.221/20.309/0.1"),
        (("20.1", "20.3"), "20.134/20.221/21.309/0.1"),
        (("20.1", "20.3"), "20.134/20.821/20.309/0.1"),
        (("60.10", "61.2"), "60.099/60.650/61.201/0.5"),
        (("60.10", "70.1"), "61.961/66.030/70.100/4.1"),
        (("150", "250"), "152.961/200.030/250.100/50.1"),
    ],
)
def test_times_that_contradict_the_footer_are_refused(times, footer, fast):
    with pytest.raises(RawDataError, match=r"times that fit the lines: minimum .* ms of 2 replies") as error:
        read_echoes(a_ping(*times, footer=footer), fast=fast)
    assert error.value.line_number == 7 and footer in error.value.found


@pytest.mark.parametrize(
    ("times", "footer"),
    [
        (("41.2", "1.99", "2.23", "250"), "1.999/74.0/250.9/103.9"),  # cut off instead of rounded
        (("41", "42", "250"), "41/111/250/97"),
        (("0.000", "41.2"), "0.000/20.6/41.250/20.6"),  # the clock was set back
        (("41.2",), "nan/nan/nan/nan"),
    ],
)
def test_rounding_is_no_contradiction(times, footer):
    assert len(read_echoes(a_ping(*times, footer=footer))) == len(times)


def test_the_times_of_windows_are_compared_too():
    text = (FOLDER / "handmade-windows_several-with-prompts.txt").read_text()
    with pytest.raises(RawDataError, match="times that fit the lines: minimum 90, mean 90, maximum 90 ms of 1 replies"):
        read_echoes(text.replace("Minimum = 90ms, Maximum = 90ms", "Minimum = 80ms, Maximum = 90ms").encode())


@pytest.mark.parametrize(
    ("text", "line_number", "expected"),
    [
        ("hello\n" + HEADER + "Hallo\n64 Bytes von x: icmp_seq=1 ttl=57 Zeit=9 ms\n", 3, "a line of ping in"),
        (HEADER + "64 bytes from x: icmp_seq=1 ttl=57 time=9 ms\nno reply within 2 s\n", 3, "a line of ping"),
        (HEADER + "\n--- 198.51.100.7 ping statistics ---\n" + HEADER, 4, "the counts of packets"),
        ("$ ping x\nPING x (198.51.100.7) 56(84) Bytes an Daten.\n64 Bytes von x: icmp_seq=1 ttl=57 Zeit=9 ms\n", 2,
         "output of ping in English"),
        ("$ ping x\n64 bytes from x: icmp_seq=1 ttl=57 time=9 ms\n", 2, "a header of ping in English"),
        ("Sat Nov 21\nPING is a fine tool\n", 1, "a header of ping in English"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fast", [False, True])
def test_a_line_that_may_be_an_echo_is_refused_and_rightly_named(text, line_number, expected, fast):
    with pytest.raises(RawDataError) as error:
        read_echoes(text.encode(), fast=fast)
    assert error.value.line_number == line_number and error.value.expected.startswith(expected)


def test_a_long_file_without_a_ping_is_given_up(monkeypatch):
    monkeypatch.setattr(lines, "MOST_OTHER_LINES", 50)
    with pytest.raises(RawDataError, match=r"<bytes>:1: expected a header .*, within 50 lines, found 'word 0'"):
        read_echoes("".join(f"word {n}\n" for n in range(51)).encode())
    rows = read_echoes(b"word\n" * 50 + a_ping("1.1") + b"word\n" * 50 + a_ping("1.2"))
    assert rows.rtt_ms.tolist() == [1.1, 1.2]


def test_empty_lines_are_passed_over_and_a_bomb_of_them_is_refused(monkeypatch):
    monkeypatch.setattr(content, "FREE_BYTES", 1 << 20)
    data = gzip.compress(b"\n" * 1_000_000 + a_ping("1.1") + b"\n" * 99)
    assert read_echoes(data).rtt_ms.tolist() == [1.1]
    with pytest.raises(RawDataError, match="gzip data of more than 1,048,576 bytes after decompression"):
        read_echoes(gzip.compress(b"\n" * 2_000_000))


def test_many_pings_cannot_claim_millions_of_echoes():
    counts = "\n--- x ping statistics ---\n90000 packets transmitted, 0 received, 100% packet loss, time 9ms\n"
    assert len(read_echoes((HEADER + counts).encode())) == 90_000
    with pytest.raises(RawDataError, match="at most 100,000 echoes without a line") as error:
        read_echoes(((HEADER + counts) * 9).encode())
    assert error.value.line_number == 8
