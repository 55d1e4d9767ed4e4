"""
Read output of ping into table echoes, with one row per echo.

The reader knows iputils, busybox, toybox, BSD and macOS, GNU inetutils, Windows in English, and fping of one host
(`-C`, `-c` or `-l`), with IPv4 and IPv6, with or without `-D` and `-O`. A file may hold several pings, and other lines
before, between and after them. The output may be indented. Each line may begin with a time from a script or `ts`. That
time is `received_at_s` if it has a date and a time zone or is in Unix seconds, and is dropped otherwise.

- Each reply is a row. A further reply to the same echo has `duplicate` set, whether ping marked it or not.
- "no answer yet" (or "Request timeout") is a lost row. If the reply comes later, the row is that reply's, not lost, and
  `error` keeps the message.
- Echoes without a line are lost rows: those between the first and the newest sequence, and those at the end that only
  the footer counts. A log without a footer (ping was killed) gives no rows for echoes after its last line.
- Windows prints no sequence numbers, so its echoes are counted from 1. Its "time<1ms" is a reply with a null `rtt_ms`
  and with "time<1ms" as `error`: the RTT is only known to be less than 1 ms.
- Times of day without a date (macOS `--apple-time`) are dropped. The RTTs of toybox are whole milliseconds.
- "time=0.000 ms" (the clock was set back) and replies too short to contain a time also have a null `rtt_ms`.
- The footer's counts must fit the rows, and its minimum, mean and maximum must fit the RTTs.
- "time=60.10 ms" of iputils s20180629 means 61.0 ms (see `lines.WITHOUT_CARRY`); `error` keeps the printed text.
- A ping without a header, for example because it could not resolve its host, has no rows.

A log passes through these modules: `scan` splits it into lines and recognises ordinary replies with numpy, one chunk at
a time; `lines` reads all other lines; `echoes` turns both into rows; `footer_times` checks the RTTs against the
footer. This module combines the rows into tables.
"""

import re
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wanbench.errors import RawDataError
from wanbench.files import replaced_file
from wanbench.read.ingest.content import File, Source, as_utf8, decompressed
from wanbench.read.ingest.rows import core

from .echoes import Echoes, Texts, code, joined
from .footer_times import Tally
from .lines import REPLY, LineReader, Ping
from .scan import events_of

__all__ = ["convert", "read"]

PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["ping", "target", "rtt_ms", "ttl", "reply_bytes", "responder", "error"],
    "column_encoding": {"sequence": "DELTA_BINARY_PACKED", "received_at_s": "BYTE_STREAM_SPLIT"},
    "store_schema": False,
    "write_statistics": ["sequence", "received_at_s", "rtt_ms"],
}
SCHEMA = pa.schema([column.arrow_field() for column in core("echoes")], metadata={"table": "echoes"})
CODE = pa.dictionary(pa.int32(), pa.string())
CODED = pa.schema([field.with_type(CODE) if field.type == pa.string() else field for field in SCHEMA])
FAST_BYTES = 1 << 20
"""Only larger files are read with numpy, one chunk at a time; smaller files are faster without."""

ROWS_AT_ONCE = 1 << 16
"""Number of rows per batch: large enough for Arrow, small enough to limit memory."""

ZERO = re.compile(r"time(?:<|=0(?:\.0*)? ?ms)")
"""Matches times that ping counts as zero in its footer."""


def read(source: Source, *, fast: bool | None = None) -> dict[str, pa.Table]:
    """
    Read a log, given as a path or bytes, into table echoes without context (run, test, regions, file).

    Rows are sorted by ping and sequence.

    With `fast`, ordinary replies are recognised with numpy, which gives the same rows; the default is to do so for
    large files. A RawDataError names the first line that is not ping's, or what is missing.

    >>> log = b"PING ::1(::1) 56 data bytes\\n64 bytes from ::1: icmp_seq=2 ttl=64 time=0.021 ms\\n"
    >>> read(log)["echoes"].select(["sequence", "rtt_ms", "lost"]).to_pylist()
    [{'sequence': 1, 'rtt_ms': None, 'lost': True}, {'sequence': 2, 'rtt_ms': 0.021, 'lost': False}]
    """
    texts: Texts = {None: 0}
    batches = [_arrow(batch, texts) for batch in _batches(source, texts, fast)]
    return {"echoes": pa.Table.from_batches(batches, CODED).cast(SCHEMA)}


def convert(source: Source, target: str | Path) -> int:
    """
    Write the echoes in a log of any length to a Parquet file, in bounded memory; return the number of rows.

    Raise RawDataError as `read` does; no file is then written.
    """
    texts: Texts = {None: 0}
    with replaced_file(Path(target)) as temporary:
        return _write(temporary, _batches(source, texts, True), texts)


def _write(path: Path, batches: Iterable[np.ndarray], texts: Texts) -> int:
    n, waiting = 0, deque()
    with pq.ParquetWriter(path, CODED, **PARQUET) as file, ThreadPoolExecutor(1) as writer:
        file.add_key_value_metadata({"ARROW:schema": b64encode(SCHEMA.serialize())})  # readers get text, not codes
        for batch in batches:
            n += len(batch)
            waiting.append(writer.submit(lambda batch: file.write_batch(_arrow(batch, texts)), batch))
            if len(waiting) > 1:  # compress one batch while the next is read; more would take memory
                waiting.popleft().result()
        while waiting:
            waiting.popleft().result()
    return n


def _batches(source: Source, texts: Texts, fast: bool | None) -> Iterator[np.ndarray]:
    """Yield the rows of a log in batches, pings one after another."""
    with decompressed(source) as (path, file):
        if not file.peek(1):
            raise RawDataError(path, None, "an empty file", "output of ping")
        fast = (file.size is None or file.size > FAST_BYTES) if fast is None else fast
        reader = LineReader(path)
        parts, n = [], 0
        for rows in _rows(path, events_of(as_utf8(file), reader, texts, fast=fast), texts):
            parts.append(rows)
            n += len(rows)
            if n >= ROWS_AT_ONCE:
                yield joined(*parts)
                parts, n = [], 0
        if n:
            yield joined(*parts)


def _rows(path: File, scanned: Iterable[tuple[Ping, np.ndarray, bool]], texts: Texts) -> Iterator[np.ndarray]:
    one, silent = None, 0
    try:
        for ping, events, ended in scanned:
            one = one or _OnePing(path, ping, silent, texts)
            yield one.add(events)
            if ended:
                yield one.finish()
                one, silent = None, one.silent
    except RawDataError:
        if one is not None:
            one.echoes.check()  # a fault in an earlier line comes first
        raise
    if one is not None:
        yield one.finish()


class _OnePing:
    """Make the rows of one ping, and compare its times with its footer."""

    def __init__(self, path: File, ping: Ping, silent: int, texts: Texts):
        self.path, self.ping, self.silent, self.texts = path, ping, silent, texts
        self.echoes = Echoes(path, ping.first_sequence, wraps=ping.dialect != "windows", silent=silent)
        self.last_line, self.times, self.comparable = 0, Tally(), True

    def add(self, events: np.ndarray) -> np.ndarray:
        if len(events):
            self.last_line = int(events["line_number"][-1])
            has_time, is_reply = ~np.isnan(events["rtt_ms"]), events["kind"] == REPLY
            self.times.add(events["rtt_ms"][has_time & is_reply])
            # only some versions include the time of a damaged reply in the footer
            self.comparable &= not (has_time & ~is_reply).any()
            remarks = events["error"][is_reply & ~has_time]
            known = list(self.texts) if len(remarks) else []
            self.times.add([0.0] * sum(bool(ZERO.match(known[remark] or "")) for remark in remarks))
        return self._numbered(self.echoes.add(events))

    def finish(self) -> np.ndarray:
        """Return the remaining rows; raise RawDataError if the footer contradicts the lines."""
        rows = self.echoes.finish(self.ping.footer, self.last_line, self.ping.reported)
        if self.comparable and not self.ping.reported:
            self.times.check(self.path, self.ping.times)
        return self._numbered(rows)

    def _numbered(self, rows: np.ndarray) -> np.ndarray:
        if len(rows):
            rows["ping"], rows["target"] = self.ping.number, code(self.texts, self.ping.target)
            self.silent += int(((rows["kind"] != REPLY) & (rows["error"] == 0)).sum())
        return rows


def _arrow(rows: np.ndarray, texts: Texts) -> pa.RecordBatch:
    """Convert rows to `CODED`: Arrow and Parquet take texts as numbers many times as fast as one by one."""
    known = pa.array(list(texts)[1:], pa.string())

    def column(field: pa.Field) -> pa.Array:
        values = np.ascontiguousarray(rows["kind"] != REPLY if field.name == "lost" else rows[field.name])
        if field.type == CODE:
            return pa.DictionaryArray.from_arrays(pa.array(values - 1, mask=values == 0), known)
        missing = np.isnan(values) if field.type == pa.float64() else values < 0 if field.nullable else None
        return pa.array(values, mask=missing).cast(field.type)

    return pa.RecordBatch.from_arrays([column(field) for field in CODED], schema=CODED)
