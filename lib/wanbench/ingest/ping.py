"""
Reads what ping printed: one row per echo. Imports nothing that measures.

Dialects: iputils, busybox, BSD and macOS, GNU inetutils, and Windows in English; IPv4 and IPv6; with or
without `-D` and `-O`. A file may hold several pings, and other lines before, between and after them. What becomes of
what ping says:

- A reply is a row. A later reply to the same echo is one more row, with `duplicate`, marked by ping or not.
- "no answer yet" (or "Request timeout") is a row that is lost, unless the reply comes later: then it is that
  reply's row, not lost, and `error` keeps what was said before.
- Echoes that no line shows are lost rows: those between the first and the newest sequence, and those at the
  end that the footer counts. A log without footer (ping was killed) has no rows for what came after its end.
- Windows prints no sequences: its echoes are counted from 1. Its "time<1ms" is a reply (not lost) whose
  `rtt_ms` is null and whose `error` is "time<1ms": all that is known is that it took less than 1 ms.
- "time=0.000 ms" (the clock was set back) and replies too short to carry a time have a null `rtt_ms` too.
- The counts of the footer must fit the rows, and its minimum, mean and maximum the times.
- "time=60.10 ms" of iputils s20180629 stands for 61.0 (see `ping_times`). Where the footer proves it, `rtt_ms` is 61.0;
  where nothing tells, null. `error` keeps what was printed.
- A ping that printed no header, because it did not know its host, say, has no rows.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import RawDataError
from ..tables import CONTEXT, table
from .content import as_utf8, decompressed
from .ping_echoes import Echoes, Events, Rows, Words
from .ping_lines import REPLY, LineReader, Ping
from .ping_scan import scan
from .ping_times import Tally, carried

PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["ping", "target", "rtt_ms", "ttl", "reply_bytes", "responder", "error"],
    "column_encoding": {"sequence": "DELTA_BINARY_PACKED"},
    "write_statistics": ["sequence", "received_at_s", "rtt_ms"],
}
COLUMNS = tuple(column for column in table("echoes").columns if column not in CONTEXT)
SCHEMA = pa.schema([column.arrow_field() for column in COLUMNS], metadata={"table": "echoes"})
FAST_BYTES = 1 << 20
ROWS_AT_ONCE = 1 << 16
ZERO = re.compile(r"time(?:<|=0(?:\.0*)? ?ms)")
"""Times that ping counts as zero in its footer."""


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
    words = Words()
    batches = _collected(lambda rows: [_arrow(batch, words) for batch in rows], source, words, fast)
    return pa.Table.from_batches(batches, SCHEMA)


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
    words = Words()
    try:
        n = _collected(lambda rows: _write(temporary, rows, words), source, words, True)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return n


class Batch(NamedTuple):
    """Rows of one or several pings, with the number of each row's ping and the code of its target."""

    rows: Rows
    ping: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, parts: list[tuple[Ping, Rows]], words: Words) -> Batch:
        """All parts, in order."""
        counts = [len(rows.sequence) for _, rows in parts]
        rows = parts[0][1]
        if len(parts) > 1:
            rows = Rows(*map(np.concatenate, zip(*(rows for _, rows in parts), strict=True)))
        return cls(
            rows,
            np.repeat([ping.number for ping, _ in parts], counts),
            np.repeat([words.code(ping.target) for ping, _ in parts], counts),
        )


def _collected(collect, source, words, fast):
    """
    What `collect` makes of the batches of a source.

    It collects twice where footers prove that some times lack a carry: by then rows before them have been given.
    """
    carry: dict[int, bool] = {}
    found = collect(_batches(source, words, fast, {}, carry))
    return collect(_batches(source, words, fast, carry, {})) if carry else found


def _write(path, batches, words) -> int:
    n, waiting = 0, deque()
    with pq.ParquetWriter(path, SCHEMA, **PARQUET) as file, ThreadPoolExecutor(1) as writer:
        for batch in batches:
            n += len(batch.ping)
            waiting.append(writer.submit(lambda batch: file.write_batch(_arrow(batch, words)), batch))
            if len(waiting) > 1:
                waiting.popleft().result()
        while waiting:
            waiting.popleft().result()
    return n


def _batches(source, words, fast, known, carry) -> Iterator[Batch]:
    with decompressed(source) as (path, file):
        if not file.peek(1):
            raise RawDataError(path, None, "an empty file", "output of ping")
        fast = (file.size is None or file.size > FAST_BYTES) if fast is None else fast
        reader = LineReader(path, known)
        parts, n = [], 0
        for ping, rows in _rows(path, scan(as_utf8(file), reader, words, fast=fast), words, carry):
            if len(rows.sequence):
                parts.append((ping, rows))
                n += len(rows.sequence)
            if n >= ROWS_AT_ONCE:
                yield Batch.of(parts, words)
                parts, n = [], 0
        if parts:
            yield Batch.of(parts, words)


def _rows(path, scanned, words, carry) -> Iterator[tuple[Ping, Rows]]:
    one, silent = None, 0
    try:
        for ping, events, ended in scanned:
            one = one or _OnePing(path, ping, silent, words)
            yield ping, one.add(events)
            if ended:
                yield ping, one.finish(carry)
                one, silent = None, one.silent
    except RawDataError:
        if one is not None:
            one.echoes.check()  # a fault in an earlier line comes first
        raise
    yield one.ping, one.finish(carry)


class _OnePing:
    """The rows of one ping, and its times against those of its footer."""

    def __init__(self, path, ping: Ping, silent: int, words: Words):
        self.path, self.ping, self.silent, self.words = path, ping, silent, words
        wraps = ping.dialect != "windows"
        self.echoes = Echoes(path, ping.first_sequence, wraps=wraps, silent=silent)
        self.last_line, self.times, self.comparable = 0, Tally(), True

    def add(self, events: Events) -> Rows:
        """Rows that nothing can change any more."""
        if not len(events.line_number):
            return self._counted(self.echoes.add(events))
        self.last_line = int(events.line_number[-1])
        known, is_reply = ~np.isnan(events.rtt_ms), events.kind == REPLY
        if (known & is_reply).all():
            self.times.add(events.rtt_ms)
            return self._counted(self.echoes.add(events))
        self.times.add(events.rtt_ms[known & is_reply])
        self.comparable &= not (
            known & ~is_reply
        ).any()  # a time of a damaged reply: versions count it or not
        for code in events.error[is_reply & ~known]:
            if ZERO.match(self.words.texts[code] or ""):
                self.times.add([0.0])
        return self._counted(self.echoes.add(events))

    def finish(self, carry: dict[int, bool]) -> Rows:
        """The rest; what the footer proves of doubtful times goes to `carry`."""
        rows = self.echoes.finish(self.ping.footer, self.last_line, self.ping.reported)
        doubtful = self.ping.doubtful
        if self.comparable and not self.ping.reported:
            found = carried(self.path, self.ping.times, self.times, doubtful)
            if doubtful.n and found is not None:
                carry[self.ping.number] = found
        return self._counted(rows)

    def _counted(self, rows):
        if rows.lost.any():
            self.silent += int((rows.lost & (rows.error == 0)).sum())
        return rows


def _arrow(batch: Batch, words: Words) -> pa.RecordBatch:
    rows = batch.rows
    columns = {
        "ping": pa.array(batch.ping),
        "target": _texts(batch.target, words),
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
