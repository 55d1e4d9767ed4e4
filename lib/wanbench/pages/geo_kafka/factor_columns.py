"""Find the columns of table trials that are settings, the factor that each belongs to, and the labels of its levels."""

import json
from numbers import Real
from typing import Any

import pandas as pd

from wanbench import tables
from wanbench.errors import RawDataError
from wanbench.formatting import count, number, quantity

# Columns of table trials that identify a trial, and are not settings.
ABOUT = ("run_id", "test_id", "block", "setting", "from_region", "to_region")
BROKER = "broker "  # Prefix of the column of a broker setting.
BUFFERS = ("socket.send.buffer.bytes", "socket.receive.buffer.bytes", "replica.socket.receive.buffer.bytes")
FETCHING = (
    "num.replica.fetchers", "replica.fetch.min.bytes", "replica.fetch.wait.max.ms", "replica.fetch.max.bytes",
    "replica.fetch.response.max.bytes",
)  # fmt: skip
# Maps each factor to the columns that it may change. A column in none of these is a factor by itself.
FACTORS = {
    "buffers": ("client_send_buffer_bytes", "client_receive_buffer_bytes", *(BROKER + name for name in BUFFERS)),
    "batch_bytes": ("batch_bytes", "linger_ms"),
    "max_in_flight": ("max_in_flight",),
    "compression": ("compression", "payload"),
    "producers": ("producers",),
    "partitions": ("partitions",),
    "consumers": ("consumer_groups", "consumers", "client_rack"),
    "security": ("security",),
    "acks": ("acks", "min_insync"),
    "gateway_bps": ("gateway_bps",),
    "replica_fetching": tuple(BROKER + name for name in FETCHING),
}
LABELS = {
    "buffers": "TCP buffers",
    "batch_bytes": "batch size",
    "max_in_flight": "requests in flight",
    "compression": "compression and payload",
    "producers": "producers",
    "partitions": "partitions",
    "consumers": "consumers and client.rack",
    "security": "encryption",
    "acks": "acks and min.insync.replicas",
    "gateway_bps": "one gateway per region",
    "replica_fetching": "how replicas fetch",
}
# Meaning of a null level, for columns where it is not Kafka's default.
MISSING = {
    "client_rack": "no client.rack",
    "gateway_bps": "full mesh",
    "security": "as the cluster",
    "target_records_per_s": "no limit",
}
NO_CONSUMERS = "no consumers"


def with_settings(trials: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """
    Expand `broker_settings`, a JSON object per trial, to one text column "broker <name>" per setting.

    Returns the trials with these columns, and the names of all columns that are settings. In the other settings nulls
    become None and numbers floats (see `plain`), so that equal settings compare as equal.

    Raises RawDataError: a `broker_settings` is not a JSON object.
    """
    names = [name for name in tables.table("trials").names if name in trials and name not in ABOUT]
    frame = trials.reset_index(drop=True).copy()
    if "broker_settings" in names:
        names.remove("broker_settings")
        changed = [_broker_settings(text) for text in frame.broker_settings]
        for name in sorted({name for one in changed for name in one}):
            frame[BROKER + name] = [one.get(name) for one in changed]
            names.append(BROKER + name)
    for name in names:
        frame[name] = [plain(value) for value in frame[name].astype(object)]
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return frame, names


def _broker_settings(text: Any) -> dict[str, str]:
    if text is None or pd.isna(text) or not text:
        return {}
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise RawDataError("trials.broker_settings", None, text, "a JSON object or nothing") from error


def plain(value: object) -> float | str | None:
    """Convert a level so that equal levels compare as equal: null to None, a number to float, all else to text."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else str(value)


def factor_of(columns: set[str]) -> str | None:
    """Return the factor to which all these columns belong; None if they belong to several, or if there are none."""
    if not columns:
        return None
    fits = [name for name, own in FACTORS.items() if columns <= set(own)]
    return fits[0] if fits else (next(iter(columns)) if len(columns) == 1 else None)


def position(factor: str) -> int:
    """Return the position of a factor in `FACTORS`; factors that are not listed come last."""
    return list(FACTORS).index(factor) if factor in FACTORS else len(FACTORS)


def factor_label(factor: str) -> str:
    """Return the readable name of a factor."""
    return LABELS.get(factor, factor.replace("_", " "))


def level_label(name: str, value: Any) -> str:
    """
    Return the level `value` of the column `name` as text.

    >>> level_label("batch_bytes", 16384.0), level_label("client_rack", None), level_label("acks", "all")
    ('16,384 bytes', 'no client.rack', 'acks all')
    """
    if value is None:
        return MISSING.get(name, "default")
    if name.endswith("_bps"):
        return quantity(value, "bit/s")
    if name.endswith("bytes"):
        return "kernel's own" if float(value) < 0 else f"{number(float(value), 0)} bytes"
    if name in ("acks", "min_insync") or name.startswith(BROKER):
        return f"{name.removeprefix(BROKER).replace('_', '.')} {_text(value)}"
    if name == "consumer_groups":
        return count(int(value), "group") if value else NO_CONSUMERS
    if name == "client_rack":
        return f"client.rack {value}"
    return f"{_text(value)} ms" if name == "linger_ms" else _text(value)


def _text(value: float | str) -> str:
    return number(value) if isinstance(value, float) else str(value)


def level_labels(levels: pd.DataFrame) -> list[str]:
    """
    Return a label for each row of `levels`, which has one column per setting of a factor.

    A label has the level of the first column that varies, and of further varying columns as long as labels are equal.
    """
    varying = [name for name in levels if len(set(levels[name])) > 1]
    shown = varying[:1]
    for name in varying[1:]:
        rows = list(zip(*(levels[each] for each in shown), strict=True))
        if len(set(rows)) < len(levels):
            shown.append(name)
    rows = [[level_label(name, row[name]) for name in shown] for row in levels.to_dict("records")]
    if sum(NO_CONSUMERS in row for row in rows) == 1:  # without consumers, other settings of consumers are irrelevant
        rows = [[NO_CONSUMERS] if NO_CONSUMERS in row else row for row in rows]
    return [", ".join(row) for row in rows]


def in_order(values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sort levels, each a tuple of values: None first, then numbers by size, then text alphabetically."""
    return sorted(values, key=lambda row: [_rank(value) for value in row])


def _rank(value: Any) -> tuple[int, float, str]:
    try:
        return (0, 0.0, "") if value in (None, "none") else (1, float(value), "")
    except ValueError:
        return (2, 0.0, str(value))
