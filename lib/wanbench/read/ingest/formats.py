"""Identify the format of binary files by their first bytes."""

from __future__ import annotations

import re

OPENING_BYTES = 1 << 16
"""Number of first bytes for `binary_format`: enough for the names of a ZIP archive's first members."""

MAGIC = (
    # (pattern at the beginning, name); the first that matches counts
    (rb"PK\x03\x04.*(?:xl/|\[Content_Types\]\.xml.*sheet)", "an Excel workbook (XLSX)"),
    (rb"PK\x03\x04.*mimetypeapplication/vnd\.oasis\.opendocument\.spreadsheet", "a spreadsheet (ODS)"),
    (rb"PK\x03\x04.*word/", "a Word document (DOCX)"),
    (rb"PK(?:\x03\x04|\x05\x06|\x07\x08)", "a ZIP archive"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document of before 2007 (XLS or DOC)"),
    (rb"%PDF-", "a PDF document"),
    (rb"\{\\rtf", "a document in Rich Text Format (RTF)"),
    (rb"PAR1[^\n]{0,8}[\x00-\x08\x0e-\x1f]", "a Parquet file"),
    (rb"ARROW1|FEA1", "an Arrow or Feather file"),
    (rb"Obj\x01", "an Avro file"),
    (rb"SQLite format 3\x00", "an SQLite database"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (
        rb"\xd4\xc3\xb2\xa1|\xa1\xb2\xc3\xd4|\x4d\x3c\xb2\xa1|\xa1\xb2\x3c\x4d|\x0a\x0d\x0d\x0a[\x00-\xff]{0,8}\x00",
        "a packet capture",
    ),
    (rb"\x96\xd5[\x00-\xff]\x21", "a data file of sysstat, which sadf -j prints as text"),
    (rb"\x89PNG\r\n\x1a\n", "a PNG image"),
    (rb"\xff\xd8\xff", "a JPEG image"),
    (rb"GIF8[79]a", "a GIF image"),
    (rb"RIFF.{4}WEBP", "a WebP image"),
    (rb"\x7fELF", "an ELF program"),
    (rb"MZ[\x00-\xff]{2}\x00", "a Windows program"),
    (rb"\xca\xfe\xba\xbe", "a Java class"),
    (rb"\x04\x22\x4d\x18", "LZ4 data"),
    (rb"\x1f[\x9d\xa0]", "data of compress"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (rb"Rar!\x1a\x07", "a RAR archive"),
    (rb".{257}ustar", "a tar archive"),
)
COMPRESSIONS = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
COMPRESSION_BYTES = 10
"""Number of first bytes that identify a compression."""

_MAGIC = tuple((re.compile(pattern, re.DOTALL), name) for pattern, name in MAGIC)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\a\x1b"))


def compression(opening: bytes) -> str | None:
    """The compression with these first bytes, one of `COMPRESSIONS`; None for any other file."""
    return next((name for name, magic in COMPRESSIONS.items() if magic.match(opening)), None)


def binary_format(opening: bytes) -> str | None:
    """
    The name of the format with these first bytes; None if it may be text.

    UTF-16 without a byte order mark counts as binary here: decode it first.

    >>> binary_format(b"%PDF-1.7"), binary_format(b"PING ::1(::1) 56 data bytes")
    ('a PDF document', None)
    """
    if name := compression(opening):
        return f"{name} data"
    for magic, name in _MAGIC:
        if magic.match(opening):
            return name
    start = opening[:512]
    n_control = len(start) - len(start.translate(None, _CONTROL))
    if b"\0" in start and n_control >= 8 and 20 * n_control > len(start):  # a damaged log has fewer
        return f"binary data that begins with {start[:8].hex(' ')}"
    return None
