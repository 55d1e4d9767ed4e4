"""
Open, decompress and decode raw files, for all readers.

- Files in gzip, bzip2, xz or Zstandard format are recognised by their first bytes, not by their names.
- Text is in UTF-8, with or without a byte order mark, or in UTF-16, which PowerShell writes.
- A file in another format (XLSX, PDF, Parquet, ...) is rejected, and the error names the format.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from wanbench.errors import RawDataError
from wanbench.runs.raw import sha256

File = str | Path
Source = File | bytes
"""What readers read: the path of a file, or its content."""
TEXT = "text, which may be compressed with gzip, bzip2, xz or zstd"
COMPRESSIONS = {
    "gzip": (rb"\x1f\x8b\x08", lambda file: gzip.GzipFile(fileobj=file)),
    "bzip2": (rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", bz2.BZ2File),
    "xz": (rb"\xfd7zXZ\x00", lzma.LZMAFile),
    "zstd": (rb"\x28\xb5\x2f\xfd", lambda file: pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")),
}
"""For each format, the pattern of its first bytes, and a function that opens a binary file as a decompressed stream."""
_COMPRESSED = re.compile(b"|".join(magic for magic, _ in COMPRESSIONS.values()))
COMPRESSION_BYTES = 10
"""Number of bytes at the start of a file that the patterns of `COMPRESSIONS` need."""

ENDINGS = re.compile(r"\.(?:gz|bz2|xz|zst)\Z", re.IGNORECASE)

FREE_BYTES = 64 << 20
"""Decompressed size that is allowed for every file."""

MAX_RATIO = 100
"""
Maximum compression ratio of larger files: logs shrink by a factor of 5 to 20, a decompression bomb by a factor of
1,000.
"""

BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
UTF16 = {"utf-16-le": re.compile(rb"(?:[^\0]\0){8}"), "utf-16-be": re.compile(rb"(?:\0[^\0]){8}")}
"""Patterns of text in UTF-16 that is mostly ASCII and has no byte order mark."""


def plain_name(path: File) -> str:
    """
    Return the path without the suffix of a compressed file.

    >>> plain_name("runs/t.producer-2.txt.gz"), plain_name("t.json")
    ('runs/t.producer-2.txt', 't.json')
    """
    return ENDINGS.sub("", str(path))


def read_bytes(source: Source, *, most_bytes: int) -> tuple[File, bytes]:
    """
    Read a file, or bytes, and return its path ("<bytes>" for bytes) and its decompressed content.

    Raise RawDataError if it cannot be read, is damaged, or has more than `most_bytes` after decompression.
    """
    with decompressed(source) as (path, file):
        return path, _whole(file, most_bytes)


def file_sha256(path: File) -> str:
    """Return the SHA-256 of a file, compressed or not, of any size; raise RawDataError if it cannot be read."""
    try:
        return sha256(path)
    except (OSError, ValueError) as error:
        raise RawDataError(path, None, getattr(error, "strerror", None) or error, "a file that can be read") from error


def unpacked(path: File, data: bytes, *, most_bytes: int) -> bytes:
    """Decompress the bytes of a file that were already read; errors are as for `read_bytes`."""
    return _whole(Content(path, io.BytesIO(data), len(data)), most_bytes)


def read_text(source: Source, *, most_bytes: int, otherwise: str | None = None) -> tuple[File, str]:
    """Read a file, or bytes, and return its path and its text; errors are as for `read_bytes` and `decoded`."""
    path, data = read_bytes(source, most_bytes=most_bytes)
    return path, decoded(path, data, otherwise=otherwise)


def decoded(path: File, data: bytes, *, otherwise: str | None = None) -> str:
    """
    Decode the content of a file to text, without a byte order mark.

    Text that is not valid UTF-8 is decoded with the encoding `otherwise`, if given; invalid bytes become U+FFFD. A
    RawDataError names the format of a file that is not text or, without `otherwise`, the line of the first invalid
    byte.

    >>> decoded("a.txt", b"\\xff\\xfeP\\0I\\0N\\0G\\0"), decoded("a.txt", b"1\\xa0000", otherwise="cp1252")
    ('PING', '1\\xa0000')
    """
    encoding, mark = encoding_of(path, data[:OPENING_BYTES])
    data = data[mark:]
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if otherwise:
            return data.decode(otherwise if encoding == "utf-8" else encoding, "replace")
        line = data.count(b"\n", 0, error.start) + 1 if encoding == "utf-8" else None
        found = data[error.start : error.start + 20]
        raise RawDataError(path, line, found, f"text in {encoding.upper()}") from None


def encoding_of(path: File, opening: bytes) -> tuple[str, int]:
    """Return the encoding of text and the length of its byte order mark; a RawDataError names any other format."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if opening.startswith(mark):
            return encoding, len(mark)
    for encoding, pattern in UTF16.items():
        if pattern.match(opening):
            return encoding, 0
    if name := binary_format(opening):
        raise RawDataError(path, None, name, TEXT)
    return "utf-8", 0


def _whole(file: Content, most_bytes: int) -> bytes:
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise RawDataError(file.path, None, "a larger file", f"a file of at most {most_bytes:,} bytes")
    return data


@contextmanager
def decompressed(source: Source) -> Generator[tuple[File, Content]]:
    """
    Open a file, or bytes; yield its path ("<bytes>" for bytes) and its decompressed content.

    Raise RawDataError, here or when the content is read, if the file cannot be read, is damaged, or is a decompression
    bomb.
    """
    if isinstance(source, bytes | bytearray):
        yield "<bytes>", Content("<bytes>", io.BytesIO(source), len(source))
        return
    try:
        file = open(source, "rb", buffering=0)  # noqa: SIM115
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or error
        raise RawDataError(source, None, found, "a file that can be read") from error
    with file:
        yield source, Content(source, file, os.fstat(file.fileno()).st_size)


def as_utf8(file: Content) -> Content | Transcoded:
    """Return a stream of the file's text in UTF-8; a RawDataError names the format if the file is not text."""
    encoding, _ = encoding_of(file.path, file.peek(OPENING_BYTES))
    return file if encoding == "utf-8" else Transcoded(file, encoding)


class Content:
    """The content of a file as a stream, decompressed if necessary. `size` is None for a compressed file."""

    def __init__(self, path: File, file: BinaryIO, size: int):
        self.path, self.format, self.size = path, None, size
        self._file, self._most, self._n, self._start = file, None, 0, b""
        name = compression(self.peek(COMPRESSION_BYTES))
        if name:
            file.seek(0)
            self.format, self.size, self._start, self._n = name, None, b"", 0
            self._most = max(FREE_BYTES, MAX_RATIO * size)
            self._file = COMPRESSIONS[name][1](file)

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them; fewer only at the end."""
        while len(self._start) < size and (part := self._more(OPENING_BYTES)):  # at once, as most files are small
            self._start += part
        return self._start[:size]

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        start, self._start = self._start[:size], self._start[size:]
        parts, left = [start] if start else [], size - len(start)
        while left and (part := self._more(left)):
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _more(self, size: int) -> bytes:
        try:
            # A plain file is not asked for much more than it has, because Python allocates what is asked for.
            most = max(self.size or 0, 1 << 16) + 1 if self._most is None else self._most + 1 - self._n
            part = self._file.read(min(size, most))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            found = getattr(error, "strerror", None) or error
            expected = f"a complete file in {self.format} format" if self.format else "a file that can be read"
            raise RawDataError(self.path, None, found, expected) from error
        self._n += len(part)
        if self._most is not None and self._n > self._most:
            found = f"{self.format} data of more than {self._most:,} bytes after decompression"
            expected = f"at most {FREE_BYTES:,} bytes, or {MAX_RATIO} times the size of the file"
            raise RawDataError(self.path, None, found, expected)
        return part


class Transcoded:
    def __init__(self, file: Content, encoding: str):
        self._file, self._encoding = file, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        """Return the next part of the text, of about `size` bytes; b"" at the end."""
        while True:
            data = self._file.read(size)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                found, expected = data[error.start : error.start + 20], f"text in {self._encoding.upper()}"
                raise RawDataError(self._file.path, None, found, expected) from None
            if text or not data:
                return text.encode()


OPENING_BYTES = 1 << 16
"""
Number of bytes at the start of a file that `binary_format` needs to see the names of a ZIP archive's first members.
"""

_MAGIC = tuple(
    (re.compile(pattern.encode(), re.DOTALL), name)
    for pattern, name in (
        line.split("\t") for line in Path(__file__).with_name("binary_formats.tsv").read_text("utf-8").splitlines()[1:]
    )
)
"""Patterns of the first bytes, and names of the formats; the first match counts."""
_ANY_MAGIC = re.compile(b"|".join(magic.pattern for magic, _ in _MAGIC), re.DOTALL)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\a\x1b"))


def compression(opening: bytes) -> str | None:
    """Return the key of `COMPRESSIONS` for a file with these first bytes; None if it is not compressed."""
    if not _COMPRESSED.match(opening):
        return None
    return next(name for name, (magic, _) in COMPRESSIONS.items() if re.match(magic, opening))


def binary_format(opening: bytes) -> str | None:
    """
    Return the name of the binary format with these first bytes; None if the file may be text in UTF-8.

    >>> binary_format(b"%PDF-1.7"), binary_format(b"PING ::1(::1) 56 data bytes")
    ('a PDF document', None)
    """
    if name := compression(opening):
        return f"{name} data"
    if _ANY_MAGIC.match(opening):
        return next(name for magic, name in _MAGIC if magic.match(opening))
    start = opening[:512]
    n_control = len(start) - len(start.translate(None, _CONTROL))
    if b"\0" in start and n_control >= 8 and 20 * n_control > len(start):  # a damaged log has fewer
        return f"binary data that begins with {start[:8].hex(' ')}"
    return None
