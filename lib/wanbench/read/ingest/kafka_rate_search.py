"""The steps of a search for a rate, as table rate_search_steps. Their loads are read by `kafka_open_loop`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .json_values import Members, read_json
from .rows import fitting

WHAT = ("publish", "end to end")


def read(path) -> dict[str, pd.DataFrame]:
    """
    The steps in <stem>.search.json.

    Raises
    ------
    RawDataError
        If the file is not what a search leaves.
    """
    path = Path(path)
    top = Members(path, None, read_json(path, dict, "a search for a rate in JSON"))
    if top.count("format") != 1:
        top.refuse(f"format {top.values.get('format')!r}", "format 1")
    settings = top.members("settings")
    about = {
        "what": settings.text("what", WHAT),
        "quantile": settings.number("quantile", most=1),
        "objective_ms": settings.number("objective_ms"),
        "ended": top.text("ended"),
    }
    rows = [_row(step) | about for step in top.list("steps")]
    return {"rate_search_steps": fitting(path, "rate_search_steps", rows)}


def _row(step: Members) -> dict:
    return {
        "step": step.count("step", minimum=1),
        "rate_records_per_s": step.number("rate_records_per_s"),
        "value_ms": step.number("value_ms"),
        "n": step.count("n"),
        "n_lost": step.count("n_lost"),
        "backlog_grew": step.flag("backlog_grew"),
        "fell_behind": step.flag("fell_behind"),
        "met": step.flag("met"),
        "met_until_records_per_s": step.number("met_until"),
        "failed_from_records_per_s": step.number("failed_from"),
    }
