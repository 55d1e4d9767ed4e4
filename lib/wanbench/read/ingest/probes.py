"""Read the numbered packets of `wanbench.pages.lab_calibration.probe` into tables probes and probe_runs."""

from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .content import read_bytes
from .rows import fitting

MOST = 1_000_000  # packets of a test; a line is shorter than 100 bytes
_EXPECTED = '"probes COUNT BYTES BEGAN_US", a line "NUMBER SENT_US RECEIVED_US" per packet, "end" with three numbers'


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read the output of the probe's receiver; raise RawDataError if the output is incomplete or another program's."""
    lines = read_bytes(Path(path), most_bytes=100 * MOST)[1].decode("ascii", "replace").splitlines()
    words = [line.split() for line in lines]
    at = 0
    try:
        (heard,), (what, *head), *rows, (last, *used) = words
        count, size, began_us, first_us = map(int, head)
        relay_us, lasted_us, marked = map(int, used)
        if (heard, what, last) != ("listening", "probes", "end") or not 0 < count <= MOST:
            raise ValueError
        got = np.full((count, 2), np.nan)
        for at, row in enumerate(rows, 2):
            number, sent_us, delay_us = map(int, row)
            if not (0 <= number < count and np.isnan(got[number, 0]) and delay_us >= 0):
                raise ValueError(lines[at])
            got[number] = first_us + sent_us, delay_us
    except ValueError:
        raise RawDataError(path, at + 1, lines[at] if lines else "", _EXPECTED) from None
    probes = {
        "sequence": np.arange(count),
        "sent_at_s": got[:, 0] / 1e6,
        "delay_ms": got[:, 1] / 1000,
        "lost": np.isnan(got[:, 0]),
    }
    run = {"packets": count, "packet_bytes": size, "schedule_began_at_s": began_us / 1e6 or None}
    run |= {"lasted_s": lasted_us / 1e6, "relay_processor_s": relay_us / 1e6, "packets_marked": marked}
    return {"probes": fitting(path, "probes", probes), "probe_runs": fitting(path, "probe_runs", [run])}
