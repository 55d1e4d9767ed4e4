"""What readers give, as DataFrames with the columns and types of their tables."""

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.ingest import iperf3, kafka_load, ping
from wanbench.ingest.rows import core, fitting

TOOLS = {"producers": "producer", "consumers": "consumer", "round_trips": "round trip"}


def read_echoes(source, **options) -> pd.DataFrame:
    """Table echoes of a log of ping."""
    frame = ping.read(source, **options)["echoes"].to_pandas()
    return pd.DataFrame({column.name: frame[column.name].astype(column.dtype) for column in core("echoes")})


def read_iperf3(source) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables transfers and intervals of iperf3's JSON."""
    rows = iperf3.read(source)
    return tuple(fitting("iperf3", name, rows[name]) for name in ("transfers", "intervals"))


def tools(source) -> tuple[str, ...]:
    """The perf tools of Kafka whose output a file holds, in order of appearance."""
    try:
        return tuple(TOOLS[name] for name in kafka_load.read(source) if name in TOOLS)
    except RawDataError:
        return ()
