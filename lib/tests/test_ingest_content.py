"""What a raw file holds: compressions, encodings, formats that are no text, and bounds."""

import bz2
import gzip
import io
import lzma
import os
import zipfile

import pyarrow as pa
import pytest

from wanbench.errors import RawDataError
from wanbench.ingest import content, formats

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
    with pytest.raises(RawDataError, match=f"expected a whole file in {name} format"):
        content.read_bytes(source, most_bytes=1 << 20)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_decompression_bomb_is_refused_once_it_is_too_large(given, name, monkeypatch):
    monkeypatch.setattr(content, "FREE_BYTES", 1 << 20)
    source = given(COMPRESS[name](b"\n" * (10 << 20)))
    for read in (lambda: content.read_bytes(source, most_bytes=1 << 40), lambda: in_pieces(source)):
        with pytest.raises(RawDataError, match=rf"{name} data of more than [\d,]+ bytes once decompressed"):
            read()


@pytest.mark.parametrize("compress", [bytes, *COMPRESS.values()], ids=["plain", *COMPRESS])
def test_more_than_the_reader_wants_is_refused(given, compress):
    source = given(compress(BYTES))
    assert content.read_bytes(source, most_bytes=len(BYTES))[1] == BYTES
    with pytest.raises(RawDataError, match="expected at most 2,000 bytes, found 'a larger file'"):
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


@pytest.mark.parametrize(
    "text", [b"", b"PK", b"MZ said", b"BZh", b"BZh91 is a name", b"\0", b"{}", b"P\0", b"\x1f"]
)
def test_short_and_odd_texts_are_not_taken_for_a_format(text):
    assert content.read_text(text, most_bytes=99)[1] == text.decode()
    assert formats.binary_format(text) is None


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
