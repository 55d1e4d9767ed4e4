"""
Read output of Kafka's perf tools, from the experiment `kafka_load` or any script.

A file passes through `lines` (text and line numbers), `outputs` (assigns lines to tools; a file may mix several),
`producer`, `consumer` and `round_trip` (each tool's lines and rows), `client_metrics` (--print-metrics), `complaints`
(errors, warnings, and irrelevant lines) and `numbers` (figures in any locale); `log` makes tables of all. `times` and
`batches` read the experiment's files next to the logs.
"""

from .batches import read_batches
from .log import read, read_round_trips
from .times import read_times

__all__ = ["read", "read_batches", "read_round_trips", "read_times"]
