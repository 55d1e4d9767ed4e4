"""What a raw file holds: compressions, encodings, formats that are no text, and bounds."""

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from wanbench.errors import RawDataError
from wanbench.read import importers
from wanbench.read.ingest import cloudwatch, content, host_metrics, kafka_load

TEXT = "PING ::1(::1) 56 data bytes\n" + "64 bytes from ::1: icmp_seq=1 ttl=64 time=0.02 ms – ok\n" * 50
BYTES = TEXT.encode()


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(data)
    return sink.getvalue().to_pybytes()


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return buffer.getvalue()


COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstd}


@pytest.fixture(params=["bytes", "path"])
def given(request, tmp_path):
    """What makes a source of data: the bytes themselves, or a file with a name that says nothing."""

    def source(data: bytes):
        if request.param == "bytes":
            return data
        (tmp_path / "log.txt").write_bytes(data)
        return tmp_path / "log.txt"

    return source


def in_pieces(source) -> str:
    with content.decompressed(source) as (_, file):
        file = content.as_utf8(file)
        return b"".join(iter(lambda: file.read(100), b"")).decode().removeprefix("\ufeff")


@pytest.mark.parametrize("compress", [bytes, *COMPRESS.values()], ids=["plain", *COMPRESS])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_is_read_however_it_is_encoded_and_compressed(given, encoding, compress):
    source = given(compress(TEXT.encode(encoding)))
    assert content.read_text(source, most_bytes=1 << 20)[1] == TEXT
    assert in_pieces(source) == TEXT


@pytest.mark.parametrize("compress", COMPRESS.values(), ids=COMPRESS)
def test_files_that_were_compressed_apart_and_joined_are_read_whole(given, compress):
    assert content.read_bytes(given(compress(BYTES) * 2), most_bytes=1 << 20)[1] == BYTES * 2


@pytest.mark.parametrize(
    ("name", "at"), [("gzip", 10), ("bzip2", 10), ("xz", 6), ("zstd", 4), *((name, -5) for name in COMPRESS)]
)
def test_damaged_compression_is_refused_and_named(given, name, at):
    data = COMPRESS[name](os.urandom(9000))
    source = given(data[:at] + b"\xff" * 9 + data[at + 9 :] if at > 0 else data[:at])
    with pytest.raises(RawDataError, match=f"expected a complete file in {name} format"):
        content.read_bytes(source, most_bytes=1 << 20)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_decompression_bomb_is_refused_once_it_is_too_large(given, name, monkeypatch):
    monkeypatch.setattr(content, "FREE_BYTES", 1 << 20)
    source = given(COMPRESS[name](b"\n" * (10 << 20)))
    for read in (lambda: content.read_bytes(source, most_bytes=1 << 40), lambda: in_pieces(source)):
        with pytest.raises(RawDataError, match=rf"{name} data of more than [\d,]+ bytes after decompression"):
            read()


@pytest.mark.parametrize("compress", [bytes, *COMPRESS.values()], ids=["plain", *COMPRESS])
def test_more_than_the_reader_wants_is_refused(given, compress):
    source = given(compress(BYTES))
    assert content.read_bytes(source, most_bytes=len(BYTES))[1] == BYTES
    with pytest.raises(RawDataError, match="expected a file of at most 2,000 bytes, found 'a larger file'"):
        content.read_bytes(source, most_bytes=2000)


FORMATS = {
    "an Excel workbook (XLSX)": zipped("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"),
    "a Word document (DOCX)": zipped("[Content_Types].xml", "word/document.xml"),
    "a ZIP archive": zipped("ping.txt"),
    "a PDF document": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "a Parquet file": b"PAR1\x15\x04\x15\x00",
    "an SQLite database": b"SQLite format 3\0\x10\0",
    "a packet capture": b"\xd4\xc3\xb2\xa1\x02\0\x04\0",
    "a data file of sysstat, which sadf -j prints as text": b"\x96\xd5\x75\x21\x0c\x06",
    "a PNG image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "an ELF program": b"\x7fELF\x02\x01\x01\0",
    "a tar archive": b"ping.txt".ljust(257, b"\0") + b"ustar\x0000",
    "gzip data": gzip.compress(BYTES),
    "binary data that begins with 00 01 02 03 04 05 06 07": bytes(range(256)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_text_is_named_by_its_first_bytes(given, name):
    source = given(gzip.compress(FORMATS[name]) if name == "gzip data" else FORMATS[name])
    for read in (lambda: content.read_text(source, most_bytes=1 << 20), lambda: in_pieces(source)):
        with pytest.raises(RawDataError) as error:
            read()
        assert (error.value.found, error.value.line_number) == (name, None)


@pytest.mark.parametrize("text", [b"", b"PK", b"MZ said", b"BZh", b"BZh91 is a name", b"\0", b"{}", b"P\0", b"\x1f"])
def test_short_and_odd_texts_are_not_taken_for_a_format(text):
    assert content.read_text(text, most_bytes=99)[1] == text.decode()
    assert content.binary_format(text) is None


def test_text_in_another_encoding_is_refused_with_its_line_unless_another_is_allowed():
    text = "5 records\n" * 51
    data = text.encode() + "größer".encode("cp1252")
    with pytest.raises(RawDataError, match="expected text in UTF-8") as error:
        content.decoded("a.txt", data)
    assert error.value.line_number == 52
    assert content.decoded("a.txt", data, otherwise="cp1252") == text + "größer"
    assert content.decoded("a.txt", data, otherwise="utf-8") == text + "gr\ufffd\ufffder"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_that_is_cut_in_a_character_is_refused(encoding):
    data = TEXT.encode(encoding)[:-1]
    with pytest.raises(RawDataError, match=f"expected text in {encoding.upper()}"):
        content.decoded("a.txt", data)
    with pytest.raises(RawDataError, match=f"expected text in {encoding.upper()}"):
        in_pieces(data)


def test_a_path_that_no_system_has_is_refused():
    with pytest.raises(RawDataError, match="expected a file that can be read, found 'embedded null byte'"):
        content.read_bytes("a\0b", most_bytes=1)


def test_an_error_keeps_no_more_of_a_file_than_it_shows():
    error = RawDataError("a.txt", 1, "x" * 209_000_000, "y" * 5000)
    assert (len(error.found), len(error.expected), len(str(error))) == (120, 1000, 1149)


ENDINGS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd, ".GZ": gzip.compress}
SADF = Path(__file__).parent / "samples" / "host_metrics" / "sysstat-12.6.1_a.sadf.json"
PRODUCER = b"500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\n"
SURVEYED = {
    "timestamp": "2022-02-14T08:59:09Z", "run_id": "a", "from": {"cloud": "GCP", "region": "us-east1"},
    "to": {"cloud": "AWS", "region": "eu-west-2"}, "bitrate_Bps": "13107200", "avgrtt": "91.605",
}  # fmt: skip
MAPPED = {"a": "aws:us-east-1", "b": "aws:eu-west-1", "rtt": 20.25}
MAPPING = {"columns": {"from": "a", "to": "b", "mean_rtt": "rtt"}, "units": {"rtt": "ms"}}


def as_bytes(value) -> bytes:
    return json.dumps(value).encode()


def of_producer(path) -> tuple:
    found = kafka_load.read(path)
    [window], [error] = found["producer_windows"].to_dict("records"), found["producers"].error
    return window["producer"], window["warmup"], error


NAMED = {
    "producer": (
        *("t.producer-2.txt", PRODUCER),
        {
            "t.producer-2.lines.json": as_bytes({"lines": [1000.0]}),
            "t.producer-2.stderr.txt": b"java.net.ConnectException: refused\n",
            "t.times.json": as_bytes({"counts_from_s": 2000.0}),
        },
        of_producer,
        (2, True, "no summary: java.net.ConnectException: refused"),
    ),
    "hosts": (
        *("h.sadf.json", SADF.read_bytes()),
        {"h.hosts.json": as_bytes({"machine_of": ["m 0"], "network_of": ["n 0"]})},
        lambda path: sorted(set(host_metrics.read(path)["metrics"].host)),
        ["m 0", "n 0"],
    ),
    "survey": (
        *("s.jsonl", as_bytes(SURVEYED)),
        {},
        lambda path: importers.read_survey(path)["pings"].mean_rtt_ms.tolist(),
        [91.605],
    ),
    "mapping": (
        *("m.ndjson", as_bytes(MAPPED)),
        {},
        lambda path: importers.read_table(path, MAPPING)["pings"].mean_rtt_ms.tolist(),
        [20.25],
    ),
}  # fmt: skip


@pytest.mark.parametrize("ending", ["", *ENDINGS])
@pytest.mark.parametrize("case", NAMED)
def test_a_compressed_file_is_what_its_name_says(tmp_path, case, ending):
    name, data, neighbours, remarks, expected = NAMED[case]
    for other, there in neighbours.items():
        (tmp_path / other).write_bytes(there)
    path = tmp_path / (name + ending)
    path.write_bytes(ENDINGS.get(ending, bytes)(data))
    assert remarks(path) == expected


def test_a_small_json_file_may_be_compressed_and_cloudwatch_needs_its_series(tmp_path):
    path = tmp_path / "t.cloudwatch.json"
    path.write_bytes(gzip.compress(b'{"name": "b-1", "kind": "msk", "series": []}'))
    assert cloudwatch.read(path)["metrics"].empty
    path.write_bytes(b'{"name": "b-1", "kind": "msk"}')
    with pytest.raises(RawDataError, match="a resource without series"):
        cloudwatch.read(path)
