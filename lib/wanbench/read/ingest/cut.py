"""Read the times of `wanbench.pages.lab_calibration.design`; its echoes are read by `ping`."""

from __future__ import annotations

import pandas as pd

from wanbench.errors import RawDataError

from .json_values import read_json
from .kafka_load.times import is_time
from .rows import core, fitting


def read(path) -> dict[str, pd.DataFrame]:
    """
    Table cuts, without its context: the times of one cut, a single row.

    Raises
    ------
    RawDataError
        If the file is not a JSON object of these four times in order.
    """
    names = [column.name for column in core("cuts")]
    content = read_json(path, dict, "the times of a cut in JSON")
    if set(content) != set(names):
        raise RawDataError(path, None, content, f"a JSON object with {', '.join(names)}")
    times = [content[name] for name in names]
    if not all(map(is_time, times)):
        raise RawDataError(path, None, times, "Unix times in seconds")
    times = [float(t) for t in times]
    if times != sorted(times):
        raise RawDataError(path, None, times, "times in the order of the commands")
    return {"cuts": fitting(path, "cuts", [dict(zip(names, times, strict=True))])}
