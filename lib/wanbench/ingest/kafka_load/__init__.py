"""
Reads what Kafka's perf tools printed under load, by this library's experiment `kafka_load` or by anyone's script.

A file passes through `lines` (text and line numbers), `outputs` (which tool a line belongs to; a file may mix several),
`producer`, `consumer` and `round_trip` (what the lines of each tool look like, and its rows), `client_metrics`
(--print-metrics), `complaints` (errors, warnings, and lines without meaning) and `numbers` (figures in any locale);
`log` makes tables of it all. `times` and `batches` read the files that the experiment leaves next to the logs.
"""

from .batches import read_batches
from .log import read, read_round_trips
from .times import read_times

__all__ = ["read", "read_batches", "read_round_trips", "read_times"]
