"""
Judge an open-loop load by its counts, for rate searches, which must decide while measuring, and for readers.

The generator fell behind if more than 1 % of the counted records were handed over late by more than 5 ms and 5 % of the
median time to acknowledgement, excluding waits for a full queue: the 99th percentile of latency may then be the
generator's own. Less than 5 ms is a time slice of a busy processor; a twentieth of a latency changes no conclusion
about it.
"""

from collections.abc import Mapping, Sequence

LATE_SHARE = 0.01
LATE_MS = 5.0
LATE_PART = 0.05
LATE_UNIT_MS = 0.1  # unit of the programs' counts of lateness
# Minimum part of the rate at which acknowledgements keep up: at 0.99, an hour leaves a backlog of 36 s.
SUSTAINED = 0.99


def quantile(counts: Mapping[int, int], q: float, n_lost: int = 0) -> int | None:
    """
    Return the smallest value that a share q of the records does not exceed; None if that record was lost, or without
    records.

    >>> quantile({10: 98, 70: 1}, 0.99, n_lost=1), quantile({10: 98}, 0.99, n_lost=2)
    (70, None)
    """
    total, so_far = sum(counts.values()) + n_lost, 0
    for value in sorted(counts):
        so_far += counts[value]
        if so_far >= q * total - 1e-9:
            return value
    return None


def fell_behind(late: Mapping[int, int], published_us: Mapping[int, int]) -> bool:
    """
    Tell whether the generator was late, by counts of lateness (in units of `LATE_UNIT_MS`) and of times to
    acknowledgement of the counted records.

    >>> fell_behind({0: 98, 60: 2}, {20_000: 100}), fell_behind({0: 98, 60: 2}, {900_000: 100})
    (True, False)
    """
    allowed_ms = max(LATE_MS, LATE_PART * (quantile(published_us, 0.5) or 0) / 1_000)
    n_late = sum(n for value, n in late.items() if value * LATE_UNIT_MS > allowed_ms)
    return n_late > LATE_SHARE * sum(late.values())


def backlog_grew(backlog: Sequence[int], rate: float) -> bool:
    """
    Tell whether acknowledgements came at less than `SUSTAINED` of the rate, by the backlog at the end of each counted
    second: its mean in the last third against that in the first third.

    >>> backlog_grew([40, 55, 38, 60, 44, 51], 1_000), backlog_grew([40, 50, 60, 80, 90, 100], 1_000)
    (False, True)
    """
    third = len(backlog) // 3
    if not third:
        return False
    growth = (sum(backlog[-third:]) - sum(backlog[:third])) / third
    return growth > (1 - SUSTAINED) * rate * (len(backlog) - third)
