"""Outages of an event stream, such as acknowledgements: its longest gap, and when its rate is restored."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

STEP_S = 0.1
"""Step between the starts of windows: a tenth of the shortest outage that a page reports, a second."""
WINDOW_S = 1.0
"""Length of the windows over which a rate is taken: several RTTs, so that bursts of acknowledgements even out."""
HOLD_S = 2.0
"""How long a rate must hold before it counts as restored."""


@dataclass(frozen=True)
class Outage:
    """
    The longest gap of a stream: the times of the events before and after it, by their own clock.

    `length_s` is the time between them (or until healing, if sooner), less the schedule's gap. A censored outage lasted
    at least this long: no event followed, or only after healing, or another gap that was cut there became longer.
    """

    start_s: float
    end_s: float
    length_s: float
    censored: bool


def longest_gap(
    times, begin_s: float, end_s: float, until_s: float, schedule_gap_s: float = 0.0, *, healed_s: float | None = None
) -> Outage:
    """
    Find the longest time without an event, among gaps that overlap a fault from `begin_s` to `end_s`.

    The gap around `begin_s` counts from the event before it, less the usual gap of the schedule. A gap that reaches
    `until_s`, after which no events were due, is censored; so is one that spans `healed_s`, where it is cut.

    >>> longest_gap([0, 1, 2, 3, 7, 8, 9], 3.5, 6, 9, schedule_gap_s=1)
    Outage(start_s=3.0, end_s=7.0, length_s=3.0, censored=False)
    >>> longest_gap([0, 1, 2, 3, 7, 8, 9], 3.5, 6, 9, schedule_gap_s=1, healed_s=6)
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
    length = float(max(seen[k] - schedule_gap_s, 0.0))
    cut = inside & (open_end | (stops > healed_s))
    at_least = cut[k] or (cut & (stops - starts > seen[k])).any()  # one that was cut may have become longer
    return Outage(float(starts[k]), float(stops[k]), length, bool(at_least) and length > 0)


def rates(times, from_s: float, to_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Start and events per second of each window of `WINDOW_S`, `STEP_S` apart, within `from_s` and `to_s`."""
    times = np.sort(np.asarray(times, dtype=float))
    starts = from_s + STEP_S * np.arange(max(int((to_s - from_s - WINDOW_S) / STEP_S + 1e-9) + 1, 0))
    counts = np.searchsorted(times, starts + WINDOW_S) - np.searchsorted(times, starts)
    return starts, counts / WINDOW_S


def time_to_recover(times, before_s: float, begin_s: float, until_s: float, *, share: float = 0.95) -> float:
    """
    Compute the seconds from `begin_s` until the stream returns to a share of its earlier rate and keeps it for
    `HOLD_S`.

    The earlier rate is that from `before_s` to `begin_s`; after `until_s` no events were due. A window counts as too
    low only if it is also below every window before the fault. The result is 0 if the rate never fell, NaN if it was
    not restored or nothing came before.
    """
    times = np.sort(np.asarray(times, dtype=float))
    _, earlier = rates(times, before_s, begin_s)
    if not len(earlier) or not earlier.mean():
        return nan
    starts, rate = rates(times, begin_s, until_s)
    low = (rate < share * earlier.mean()) & (rate < earlier.min())
    if not low.any():
        return 0.0
    first, hold = int(low.argmax()), max(round(HOLD_S / STEP_S), 1)
    runs = np.convolve(low[first:], np.ones(hold), mode="valid")  # how many of the next windows are too low
    if not (runs < 0.5).any():
        return nan
    back = starts[first + int((runs < 0.5).argmax())]
    # the window may begin before the event that filled it, as when all that had waited comes at once
    return float(times[np.searchsorted(times, back)] - begin_s)
