"""Find the longest gap of a stream of events, such as acknowledgements, and the rate of events over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

STEP_S = 0.1
"""
Seconds between the starts of windows: a tenth of the shortest outage that a page reports, which is a second.
"""
WINDOW_S = 1.0
"""
Length in seconds of the windows over which a rate is computed: several RTTs, so bursts of acknowledgements average out.
"""


@dataclass(frozen=True)
class Outage:
    """
    The longest gap of a stream, from the event before it (`start_s`) to the event after it (`end_s`).

    `length_s` is the time between these events, or from the first one to healing if that comes sooner, minus the usual
    gap of the schedule. `censored` means that `length_s` is a lower bound: at healing or at the end of the stream, this
    gap was still open, or another that may have become longer.
    """

    start_s: float
    end_s: float
    length_s: float
    censored: bool


def longest_gap(
    times: ArrayLike, begin_s: float, end_s: float, until_s: float, usual_s: float = 0, *, healed_s: float | None = None
) -> Outage:
    """
    Find the longest gap between events at `times` that overlaps a fault from `begin_s` to `end_s`.

    `usual_s`, the usual gap between events, is subtracted from the length. A gap is censored if it lasts until
    `until_s`, after which no events were due, or if it spans `healed_s`, where its length is cut off. All times are in
    s since the same moment.

    >>> longest_gap([0, 1, 2, 3, 7, 8, 9], 3.5, 6, 9, usual_s=1)
    Outage(start_s=3.0, end_s=7.0, length_s=3.0, censored=False)
    >>> longest_gap([0, 1, 2, 3, 7, 8, 9], 3.5, 6, 9, usual_s=1, healed_s=6)
    Outage(start_s=3.0, end_s=7.0, length_s=2.0, censored=True)
    >>> longest_gap([0, 3, 5.5, 9], 0, 6, 9, healed_s=6)  # at healing the gap from 5.5 s is the shorter one
    Outage(start_s=0.0, end_s=3.0, length_s=3.0, censored=True)
    """
    times = np.sort(np.asarray(times, dtype=float))
    times = times[np.isfinite(times)]
    times = times[times <= max(until_s, end_s)] if len(times) else times
    starts = times if len(times) and times[0] <= begin_s else np.concatenate([[begin_s], times])
    stops = np.append(starts[1:], until_s)
    open_end = np.arange(len(starts)) == len(starts) - 1
    inside = (stops > begin_s) & (starts < end_s)
    if not inside.any():
        return Outage(begin_s, begin_s, 0.0, False)
    healed_s = np.inf if healed_s is None else healed_s
    seen = np.where(inside, np.minimum(stops, healed_s) - starts, -np.inf)
    k = int(seen.argmax())
    length = float(max(seen[k] - usual_s, 0.0))
    cut = inside & (open_end | (stops > healed_s))
    at_least = cut[k] or (cut & (stops - starts > seen[k])).any()  # a gap that was cut off may have become longer
    return Outage(float(starts[k]), float(stops[k]), length, bool(at_least) and length > 0)


def rates(times: ArrayLike, from_s: float, to_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return events per second in sliding windows of `WINDOW_S`, as (starts of the windows, rates)."""
    times = np.sort(np.asarray(times, dtype=float))
    starts = from_s + STEP_S * np.arange(max(int((to_s - from_s - WINDOW_S) / STEP_S + 1e-9) + 1, 0))
    counts = np.searchsorted(times, starts + WINDOW_S) - np.searchsorted(times, starts)
    return starts, counts / WINDOW_S
