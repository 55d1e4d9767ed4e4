"""What readers give, as DataFrames with the columns and types of their tables."""

import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.read.ingest import iperf3, kafka_load, ping
from wanbench.read.ingest.rows import core, fitting

TOOLS = {"producers": "producer", "consumers": "consumer"}


def read_echoes(source, **options) -> pd.DataFrame:
    """Table echoes of a log of ping."""
    frame = ping.read(source, **options)["echoes"].to_pandas()
    return pd.DataFrame({column.name: frame[column.name].astype(column.dtype) for column in core("echoes")})


def read_iperf3(source) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables transfers and intervals of iperf3's JSON."""
    rows = iperf3.read(source)
    return tuple(fitting("iperf3", name, rows[name]) for name in ("transfers", "intervals"))


def read_perf_tool(*lines, end="\n", encoding="utf-8") -> dict[str, pd.DataFrame]:
    """Tables of what a perf tool of Kafka printed, checked as whole tables."""
    found = kafka_load.read((end.join(lines) + end).encode(encoding))
    for name, core_columns in found.items():
        context = dict.fromkeys(column.name for column in tables.CONTEXT) | {"source_file": "a"}
        tables.validate(name, core_columns.assign(**context))
    return found


def only(frame) -> pd.Series:
    """The one row."""
    assert len(frame) == 1
    return frame.iloc[0]


def tools(source) -> tuple[str, ...]:
    """The perf tools of Kafka whose output a file holds, in order of appearance."""
    try:
        return tuple(TOOLS[name] for name in kafka_load.read(source) if name in TOOLS)
    except RawDataError:
        return ()
