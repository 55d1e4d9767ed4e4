"""
Every table, declared once. Imports `columns` and `errors`; anything may import it.

Parquet files, the data dictionary, validation and the tests derive from `TABLES`.
`python -m wanbench.tables` prints the text of `data/README.md`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .columns import Column
from .errors import ParameterError, RawDataError


@dataclass(frozen=True)
class Table:
    """A table's name, what one row of it is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema, with unit and meaning of each field in its metadata."""
        fields = [column.arrow_field() for column in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "row": self.row})


TABLES: dict[str, Table] = {}


def _column(name: str, type: str, unit: str, meaning: str, **bounds) -> Column:
    """A column; a type that ends in "?" may be null."""
    return Column(name, type.removesuffix("?"), unit, meaning, nullable=type.endswith("?"), **bounds)


def _table(name: str, row: str, *columns: Column) -> None:
    TABLES[name] = Table(name, row, columns)


RUN = _column("run_id", "text", "", "the run, as its folder is called; of an import, as the source calls it")
FROM = _column("from_region", "text", "", "region of the host that starts the test (the client)")
TO = _column("to_region", "text", "", "region of the host that answers (the server)")
DIRECTION = _column(
    "direction",
    "text",
    "",
    "who sends: forward is the client, reverse the server",
    allowed=("forward", "reverse"),
)
CONTEXT = (
    _column("run_id", "text?", "", "the run, as its folder is called; null outside a run folder"),
    _column("test_id", "text?", "", "the test: ordinal in the plan, from, to; null outside a run folder"),
    _column("attempt", "count?", "", "1 for the first try of the test; null outside a run folder", least=1),
    _column("from_region", "text?", "", "region of the client; null outside a run folder"),
    _column("to_region", "text?", "", "region of the server; null outside a run folder"),
    _column("source_file", "text", "", "the raw file, relative to the run folder (or as it was given)"),
)

_table(
    "regions",
    "a region of a cloud, public or as a source of data calls it",
    _column("name", "text", "", "the region's name here: cloud:code"),
    _column("cloud", "text", "", "aws, azure, gcp or ibm; of an import, any"),
    _column("code", "text", "", "the region's name at its cloud"),
    _column("city", "text?", "", "the city or area that the cloud states; null if the source does not say"),
    _column("country", "text?", "", "country; null if the source does not say"),
    _column("latitude_deg", "number", "degrees", "latitude, WGS-84", least=-90, most=90),
    _column("longitude_deg", "number", "degrees", "longitude, WGS-84", least=-180, most=180),
    _column("precision_km", "number?", "km", "how far off the coordinates may be; null if nobody knows"),
    _column("source", "text", "", "where the coordinates come from"),
)
_table(
    "links",
    "one direction of an emulated link, as it was requested",
    RUN,
    _column("from_region", "text", "", "region whose packets take this link"),
    _column("to_region", "text", "", "region they arrive in"),
    _column("delay_ms", "number", "ms", "one-way delay"),
    _column("jitter_ms", "number", "ms", "spread of the one-way delay"),
    _column("loss", "number", "fraction", "packets lost at random", most=1),
    _column("rate_bps", "number?", "bit/s", "rate limit; null: none"),
    _column("queue_bytes", "count?", "bytes", "queue before the rate limit; null: the lab's own choice"),
)
_table(
    "cuts",
    "one cut of an emulated link, both ways, under echoes",
    *CONTEXT,
    _column("cut_at_s", "number", "Unix s", "when the command to cut was given"),
    _column("cut_answered_at_s", "number", "Unix s", "when the lab had answered that it was done"),
    _column("healed_at_s", "number", "Unix s", "when the command to heal was given"),
    _column("healed_answered_at_s", "number", "Unix s", "when the lab had answered that it was done"),
)
_table(
    "tests",
    "one attempt at a test: a pair measured once, in a lab with all experiments of the plan",
    RUN,
    _column("test_id", "text", "", "the test: ordinal in the plan, from, to; of an import, file and line"),
    _column("attempt", "count", "", "1 for the first try", least=1),
    _column("round", "count?", "", "the round of the plan; null where there was none"),
    _column("setting", "text?", "", "what sets it apart from others of its pair: machines, network tier"),
    FROM,
    TO,
    _column("outcome", "text", "", "how it ended", allowed=("done", "failed", "interrupted")),
    _column("failed_experiment", "text?", "", "the experiment that failed"),
    _column("reason", "text?", "", "why it failed or stopped"),
    _column("started_at_utc", "time?", "UTC", "start; null if the source does not say"),
    _column("ended_at_utc", "time?", "UTC", "end; null if it was interrupted, or nobody knows"),
)
_table(
    "echoes",
    "one ICMP echo, or one more reply to it",
    *CONTEXT,
    _column(
        "sequence", "count", "", "as ping prints it, carried on past 65,535; counted where it prints none"
    ),
    _column("received_at_s", "number?", "s", "Unix time of ping's line on the echo, from ping -D"),
    _column(
        "rtt_ms",
        "number?",
        "ms",
        "round-trip time; null if lost, or if ping printed no exact one (see error)",
    ),
    _column("lost", "flag", "", "no reply is known"),
    _column("duplicate", "flag", "", "one more reply to an echo that was answered before"),
    _column("ttl", "count?", "hops", "time to live of the reply", most=255),
    _column("reply_bytes", "count?", "bytes", "ICMP bytes of the reply (Windows: payload bytes)"),
    _column("responder", "text?", "", "who replied, or reported the error"),
    _column("error", "text?", "", "what ping said beside or instead of a reply, in its words"),
)
_table(
    "pings",
    "one ping command whose echoes are not known one by one: a row of somebody else's table",
    *CONTEXT,
    _column("n_sent", "count?", "", "echoes sent; null if the source does not say"),
    _column("n_lost", "count?", "", "echoes lost; null if the source does not say"),
    _column("min_rtt_ms", "number?", "ms", "least RTT"),
    _column("mean_rtt_ms", "number?", "ms", "mean RTT, ping's avg"),
    _column("median_rtt_ms", "number?", "ms", "median RTT"),
    _column("max_rtt_ms", "number?", "ms", "greatest RTT"),
    _column("sd_rtt_ms", "number?", "ms", "spread of the RTTs: their standard deviation, ping's mdev"),
    _column("p90_rtt_ms", "number?", "ms", "90th percentile of the RTTs"),
    _column("p95_rtt_ms", "number?", "ms", "95th percentile of the RTTs"),
    _column("p99_rtt_ms", "number?", "ms", "99th percentile of the RTTs"),
    _column("started_at_utc", "time?", "UTC", "start, or the only time that the source gives"),
)
_table(
    "transfers",
    "one direction of one iperf3 test, or of another tool's, all streams together",
    *CONTEXT,
    replace(DIRECTION, nullable=True),
    _column("protocol", "text?", "", "TCP, UDP or SCTP; null if it never started"),
    _column("streams", "count?", "", "parallel streams in this direction"),
    _column("duration_s", "number?", "s", "length at the receiver, else at the sender; omitted time apart"),
    _column(
        "bytes", "count?", "bytes", "received, as the receiver counted; of an import, the count it gives"
    ),
    _column(
        "throughput_bps",
        "number?",
        "bit/s",
        "payload rate at the receiver; null if it never reported; of an import, the rate it gives",
    ),
    _column("sent_throughput_bps", "number?", "bit/s", "payload rate at the sender"),
    _column("retransmits", "count?", "segments", "TCP segments sent again"),
    _column("min_rtt_ms", "number?", "ms", "least smoothed RTT at the intervals; sending client only"),
    _column("mean_rtt_ms", "number?", "ms", "mean smoothed RTT at the intervals; sending client only"),
    _column("max_rtt_ms", "number?", "ms", "greatest smoothed RTT at the intervals; sending client only"),
    _column(
        "max_cwnd_bytes", "count?", "bytes", "greatest congestion window of a stream; sending client only"
    ),
    _column("packets", "count?", "packets", "UDP datagrams sent"),
    _column("lost_packets", "count?", "packets", "UDP datagrams that the receiver missed"),
    _column("jitter_ms", "number?", "ms", "UDP jitter at the receiver (RFC 1889)"),
    _column("congestion_control", "text?", "", "the sender's TCP congestion control"),
    _column("mss_bytes", "count?", "bytes", "maximum segment size when the test began"),
    _column("window_bytes", "count?", "bytes", "socket buffer asked for (-w); null: the system's choice"),
    _column("block_bytes", "count?", "bytes", "length of one write, or of one UDP datagram"),
    _column("target_bitrate_bps", "number?", "bit/s", "rate asked for (-b); null: none"),
    _column("tool_version", "text?", "", "version of iperf3"),
    _column("cpu_local_percent", "number?", "%", "CPU time at the client over the test, of one core"),
    _column("cpu_remote_percent", "number?", "%", "CPU time at the server over the test, of one core"),
    _column("started_at_utc", "time?", "UTC", "start, by the client's clock"),
    _column("error", "text?", "", "what iperf3 said went wrong, in its words"),
)
_table(
    "intervals",
    "one stream of one iperf3 test over one reporting interval, as the client saw it",
    *CONTEXT,
    DIRECTION,
    _column("stream", "count", "", "the stream's number in its file, from 0"),
    _column("start_s", "number", "s", "start of the interval; counts anew after the omitted time"),
    _column("end_s", "number", "s", "end of the interval"),
    _column("bytes", "count", "bytes", "sent (forward) or received (reverse)"),
    _column("throughput_bps", "number?", "bit/s", "bytes over the interval, sent or received"),
    _column("retransmits", "count?", "segments", "TCP segments sent again"),
    _column("cwnd_bytes", "count?", "bytes", "congestion window at the end"),
    _column("rtt_ms", "number?", "ms", "smoothed RTT at the end"),
    _column("rttvar_ms", "number?", "ms", "mean deviation of the RTT at the end"),
    _column("packets", "count?", "packets", "UDP datagrams"),
    _column("lost_packets", "count?", "packets", "UDP datagrams missed; only a receiver knows"),
    _column("jitter_ms", "number?", "ms", "UDP jitter; only a receiver knows"),
    _column("omitted", "flag", "", "start-up (-O) that the totals leave out"),
)
_table(
    "pairs",
    "a summary: one ordered pair of regions over all its tests",
    FROM,
    TO,
    _column("from_cloud", "text", "", "cloud of from_region"),
    _column("to_cloud", "text", "", "cloud of to_region"),
    _column("distance_km", "number?", "km", "geodesic, WGS-84; null if a region is not in the catalogue"),
    _column("light_rtt_ms", "number?", "ms", "round trip of light in fibre over that distance"),
    _column("n_tests", "count", "", "tests that from_region started and that are done"),
    _column("n_echoes", "count?", "", "echoes that from_region sent (extra replies apart); null: not known"),
    _column("n_lost", "count?", "", "echoes lost; null: not known"),
    _column("rtt_ms", "number?", "ms", "median over tests of each test's least RTT (or as asked for)"),
    _column("throughput_bps", "number?", "bit/s", "TCP from from_region to to_region: median over tests"),
    _column("n_transfers", "count", "", "TCP transfers in that direction that gave a throughput"),
    _column("retransmits", "count?", "segments", "sum over those transfers; null if none says"),
)
_table(
    "link_counters",
    "what one direction of an emulated link carried",
    _column("run_id", "text?", "", "the run; null outside one"),
    _column("from_region", "text", "", "region whose packets take this link"),
    _column("to_region", "text", "", "region they arrive in"),
    _column("packets_sent", "count", "packets", "that entered the link"),
    _column("bytes_sent", "count?", "bytes", "that entered the link"),
    _column("packets_delivered", "count", "packets", "that left it"),
    _column("bytes_delivered", "count", "bytes", "that left it"),
    _column("packets_lost", "count", "packets", "dropped by the link's random loss"),
    _column("packets_queue_dropped", "count", "packets", "dropped because the queue was full"),
    _column("packets_cut", "count", "packets", "dropped because the link was cut"),
    _column("packets_device_dropped", "count?", "packets", "not taken by the receiving host's device"),
    _column("mean_late_ms", "number?", "ms", "how late the emulator delivered packets, on average"),
    _column("worst_late_ms", "number?", "ms", "how late it delivered the latest"),
)
_table(
    "unread",
    "a raw file, or a line of one, that could not be read",
    _column("run_id", "text?", "", "the run; null outside a run folder"),
    _column("path", "text", "", "the file, relative to the run folder (or as it was given)"),
    _column("line_number", "count?", "", "1 for the first line; null: the whole file", least=1),
    _column("found", "text", "", "what stands there"),
    _column("expected", "text", "", "what was expected instead"),
)
_table(
    "sources",
    "a file that came from elsewhere",
    _column("path", "text", "", "the file, as it was given"),
    _column("title", "text", "", "what it is, in words"),
    _column("address", "text?", "", "where it can be fetched again; null if not known"),
    _column("version", "text?", "", "the commit or the date of that state of it; null if not known"),
    _column("sha256", "text", "", "SHA-256 of the bytes that were read"),
    _column("bytes", "count", "bytes", "how many they were"),
    _column("licence", "text?", "", "its licence; null if not known"),
)
_table(
    "flags",
    "a value, row, column or region that the plausibility gate doubts",
    _column("table", "text", "", "the table it stands in"),
    _column("scope", "text", "", "what is doubted", allowed=("row", "column", "region", "table")),
    _column("verdict", "text", "", "how sure that is", allowed=("impossible", "suspect")),
    _column("rule", "text", "", "the rule that it breaks"),
    _column("row", "text?", "", "the row: its test, or its source file; null if the scope is wider"),
    _column("from_region", "text?", "", "the row's pair"),
    _column("to_region", "text?", "", "the row's pair"),
    _column("region", "text?", "", "the region that is blamed; null if none is"),
    _column("column_name", "text?", "", "the column that is doubted"),
    _column("value", "number?", "see found", "what stands there", least=None),
    _column("bound", "number?", "see found", "what the rule allows at most, or at least", least=None),
    _column("found", "text", "", "the figure, in words"),
    _column("cause", "text", "", "the likely cause"),
)
_table(
    "findings",
    "a sentence of a page and the numbers in it",
    _column("name", "text", "", "short name, unique on its page"),
    _column("sentence", "text", "", "what was found, in words, computed"),
    _column("estimate", "number?", "see unit", "the estimate", least=None),
    _column("low", "number?", "see unit", "lower end of its interval", least=None),
    _column("high", "number?", "see unit", "upper end of its interval", least=None),
    _column("unit", "text", "", "unit of estimate, low and high"),
    _column("n", "count?", "", "observations of the unit of replication"),
    _column("n_regions", "count?", "", "regions they come from"),
    _column("method", "text", "", "how estimate and interval were computed"),
    _column("assumption", "text", "", "what would break it"),
    _column("page", "text", "", "the page that says it"),
)


def table(name: str) -> Table:
    """The declaration of a table; ParameterError names the tables there are."""
    try:
        return TABLES[name]
    except (KeyError, TypeError):
        raise ParameterError(f"no table {name!r}; there are {', '.join(TABLES)}") from None


def from_rows(name: str, rows: Iterable[Mapping]) -> pd.DataFrame:
    """
    A valid table of mappings from column to value; nullable columns may be left out of a row.

    >>> row = {"path": "ping/a.txt", "found": "", "expected": "output of ping"}
    >>> from_rows("unread", [row]).line_number[0]
    <NA>
    """
    rows = list(rows)
    declared = table(name)
    extra = sorted(map(str, set().union(*rows) - set(declared.names)))
    if extra:
        raise ParameterError(
            f"table {name}: no column {', '.join(extra)}; allowed: {', '.join(declared.names)}"
        )
    columns = {
        column: pd.Series([row.get(column) for row in rows], dtype=object) for column in declared.names
    }
    return validate(name, pd.DataFrame(columns))


def validate(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """
    The frame with the table's columns, in order, each of its exact dtype.

    Only conversions that lose nothing are made: whole floats to integers, ISO 8601 text with a zone to times.
    ParameterError names table, column, the first bad row (0 is the first) and what is allowed.
    """
    declared = table(name)
    missing = [column for column in declared.names if column not in frame.columns]
    extra = [str(column) for column in frame.columns if column not in declared.names]
    if missing or extra or not frame.columns.is_unique:
        faults = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has extra {', '.join(extra)}"] * bool(
            extra
        )
        faults = " and ".join(faults) or "repeats a column"
        raise ParameterError(f"table {name} {faults}; its columns are {', '.join(declared.names)}")
    typed = {column.name: column.check(frame[column.name], name) for column in declared.columns}
    return pd.DataFrame(typed, columns=declared.names).reset_index(drop=True)


def write(name: str, frame: pd.DataFrame, folder) -> Path:
    """Validate, and write `<folder>/<name>.parquet` in one step: the file is whole or was not touched."""
    arrow = pa.Table.from_pandas(
        validate(name, frame), schema=table(name).arrow_schema(), preserve_index=False
    )
    path = Path(folder) / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{name}-", suffix=".tmp")
    os.close(handle)
    try:
        pq.write_table(
            arrow.replace_schema_metadata(table(name).arrow_schema().metadata), temporary, compression="zstd"
        )
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def read(name: str, folder) -> pd.DataFrame:
    """Read what `write` wrote; RawDataError names a file that is missing, no Parquet, or not this table."""
    path = Path(folder) / f"{table(name).name}.parquet"
    try:
        arrow = pq.read_table(path, partitioning=None)
        return validate(name, arrow.to_pandas(ignore_metadata=True))
    except FileNotFoundError:
        raise RawDataError(path, None, "no file", f"table {name}") from None
    except (pa.ArrowException, OSError, ParameterError) as error:
        raise RawDataError(path, None, error, f"table {name} in Parquet") from error


if __name__ == "__main__":
    from .dictionary import data_readme

    sys.stdout.write(data_readme())
