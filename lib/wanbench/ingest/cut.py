"""Reads what `wanbench.experiments.cut` leaves: echoes by `ping`, and the times of the commands."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

import pandas as pd

from ..errors import RawDataError

TIMES = ("cut_at_s", "cut_answered_at_s", "healed_at_s", "healed_answered_at_s")


def read(path) -> pd.DataFrame:
    """
    The times of one cut, a single row with core columns of table `cuts`.

    Raises
    ------
    RawDataError
        If the file is not a JSON object of these four times in order.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RawDataError(path, None, error, "the times of a cut in JSON") from None
    if not isinstance(content, dict) or set(content) != set(TIMES):
        raise RawDataError(path, None, content, f"a JSON object with {', '.join(TIMES)}")
    times = [content[name] for name in TIMES]
    if not all(isinstance(t, float | int) and not isinstance(t, bool) and abs(t) < 1e11 for t in times):
        raise RawDataError(path, None, times, "Unix times in seconds")
    times = [float(t) for t in times]
    if not all(isfinite(t) for t in times) or times != sorted(times):
        raise RawDataError(path, None, times, "times in the order of the commands")
    return pd.DataFrame([dict(zip(TIMES, times, strict=True))])
