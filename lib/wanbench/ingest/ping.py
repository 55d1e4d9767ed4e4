"""
Reads what ping printed: one row per echo. Imports nothing that measures.

Dialects: iputils, busybox, BSD and macOS, GNU inetutils, and Windows in English; IPv4 and IPv6; with or
without `-D` and `-O`. What becomes of what ping says:

- A reply is a row. A later reply to the same echo is one more row, with `duplicate`, marked by ping or not.
- "no answer yet" (or "Request timeout") is a row that is lost, unless the reply comes later: then it is that
  reply's row, not lost, and `error` keeps what was said before.
- Echoes that no line shows are lost rows: those between the first and the newest sequence, and those at the
  end that the footer counts. A log without footer (ping was killed) has no rows for what came after its end.
- Windows prints no sequences: its echoes are counted from 1. Its "time<1ms" is a reply (not lost) whose
  `rtt_ms` is null and whose `error` is "time<1ms": all that is known is that it took less than 1 ms.
- "time=0.000 ms" (the clock was set back) and replies too short to carry a time have a null `rtt_ms` too.
- The counts of the footer must fit the rows.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import RawDataError
from ..tables import CONTEXT, table
from .ping_echoes import Echoes, Rows, Words
from .ping_lines import LineReader
from .ping_scan import scan

PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["rtt_ms", "ttl", "reply_bytes", "responder", "error"],
    "column_encoding": {"sequence": "DELTA_BINARY_PACKED"},
    "write_statistics": ["sequence", "received_at_s", "rtt_ms"],
}
COLUMNS = tuple(column for column in table("echoes").columns if column not in CONTEXT)
SCHEMA = pa.schema([column.arrow_field() for column in COLUMNS], metadata={"table": "echoes"})
FAST_BYTES = 1 << 20


def read(source, *, fast: bool | None = None) -> pd.DataFrame:
    """
    The echoes in ping's output, sorted by sequence: the columns of table echoes without its context.

    Parameters
    ----------
    source : path-like or bytes
        The file, or what it holds.
    fast : bool, optional
        Recognise plain replies a chunk at a time, which gives the same rows. Default: for large files.

    Raises
    ------
    RawDataError
        Names the first line that is none of ping's, or what the file lacks.

    Examples
    --------
    >>> log = b"PING ::1(::1) 56 data bytes\\n64 bytes from ::1: icmp_seq=2 ttl=64 time=0.021 ms\\n"
    >>> read(log)[["sequence", "rtt_ms", "lost"]].values.tolist()
    [[1, nan, True], [2, 0.021, False]]
    """
    frame = read_arrow(source, fast=fast).to_pandas()
    return pd.DataFrame({column.name: frame[column.name].astype(column.dtype) for column in COLUMNS})


def read_arrow(source, *, fast: bool | None = None) -> pa.Table:
    """As `read`, as an Arrow table with units and meanings: cheaper for thousands of small files."""
    with _opened(source) as (path, stream, size):
        words = Words()
        batches = list(_rows(path, stream, words, size > FAST_BYTES if fast is None else fast))
    return pa.Table.from_batches([_arrow(rows, words) for rows in batches], SCHEMA)


def convert(source, target) -> int:
    """
    Write the echoes of a log of any length to one Parquet file, and return how many rows it has.

    Reads the log as a stream, in bounded memory. The file carries units and meanings and appears once it is
    whole. RawDataError as in `read`.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".tmp")
    os.close(handle)
    n, waiting = 0, deque()
    try:
        with (
            _opened(source) as (path, stream, _),
            pq.ParquetWriter(temporary, SCHEMA, **PARQUET) as file,
            ThreadPoolExecutor(1) as writer,
        ):
            words = Words()
            for rows in _rows(path, stream, words, fast=True):
                n += len(rows.sequence)
                waiting.append(writer.submit(lambda rows: file.write_batch(_arrow(rows, words)), rows))
                if len(waiting) > 1:
                    waiting.popleft().result()
            waiting.popleft().result()
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return n


@contextmanager
def _opened(source):
    if isinstance(source, bytes | bytearray):
        yield "<bytes>", io.BytesIO(source), len(source)
        return
    try:
        with open(source, "rb", buffering=0) as stream:
            yield source, stream, os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise RawDataError(source, None, error.strerror or error, "a file that can be read") from error


def _rows(path, stream, words: Words, fast: bool) -> Iterator[Rows]:
    opening = stream.read(1 << 16)
    stream.seek(0)
    if not opening:
        raise RawDataError(path, None, "an empty file", "output of ping")
    if opening.startswith((b"\xff\xfe", b"\xfe\xff")):  # PowerShell writes UTF-16
        stream = io.BytesIO(_utf8(path, stream.read()))
        opening = stream.getvalue()[: len(opening)]
    reader = LineReader(path, opening)
    echoes, last_line = None, 0
    try:
        for events in scan(stream, reader, words, fast=fast):
            if not len(events.line_number):
                continue
            if echoes is None:
                echoes = Echoes(path, reader.first_sequence, wraps=reader.dialect != "windows")
            last_line = int(events.line_number[-1])
            rows = echoes.add(events)
            if len(rows.sequence):
                yield rows
    except RawDataError:
        if echoes is not None:
            echoes.check()  # a fault in an earlier line comes first
        raise
    echoes = echoes or Echoes(path, reader.first_sequence, wraps=True)
    yield echoes.finish(reader.footer, last_line, reader.reported)


def _utf8(path, utf16):
    try:
        return utf16.decode("utf-16").encode()
    except UnicodeError as error:
        raise RawDataError(path, None, error, "text in UTF-16, as its first bytes say") from error


def _arrow(rows: Rows, words: Words) -> pa.RecordBatch:
    columns = {
        "sequence": pa.array(rows.sequence),
        "received_at_s": pa.array(rows.received_at_s, mask=np.isnan(rows.received_at_s)),
        "rtt_ms": pa.array(rows.rtt_ms, mask=np.isnan(rows.rtt_ms)),
        "lost": pa.array(rows.lost),
        "duplicate": pa.array(rows.duplicate),
        "ttl": pa.array(rows.ttl.astype("i8"), mask=rows.ttl < 0),
        "reply_bytes": pa.array(rows.reply_bytes.astype("i8"), mask=rows.reply_bytes < 0),
        "responder": _texts(rows.responder, words),
        "error": _texts(rows.error, words),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=SCHEMA)


def _texts(codes, words: Words) -> pa.Array:
    if len(codes) and (codes == codes[0]).all():
        return pa.repeat(pa.scalar(words.texts[codes[0]], pa.string()), len(codes))
    return pa.array(words.texts, pa.string()).take(pa.array(codes))
