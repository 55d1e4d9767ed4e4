"""
Decide from counts whether an open-loop load is valid. Rate searches use this while measuring, and readers afterwards.

The generator fell behind if its producers handed over more than 1 % of the records late, or if one of its consumer
groups let more than 1 % wait in its queue: for more than 5 ms, and for more than 5 % of the median latency (to the
acknowledgement, or end to end). The 99th percentile of latency may then be due to the generator. Waits for a full
queue do not count as lateness. A shorter delay may be a time slice of a busy processor, or is too small a part of the
latency to change a conclusion.
"""

from collections.abc import Mapping, Sequence

LATE_SHARE = 0.01
LATE_MS = 5.0
LATE_PART = 0.05
LATE_UNIT_MS = 0.1  # unit of the programs' counts of lateness
# Acknowledgements keep up at this fraction of the rate or above: at 0.99, an hour leaves a backlog of 36 s.
SUSTAINED = 0.99


def quantile(counts: Mapping[int, int], q: float, n_lost: int = 0) -> int | None:
    """
    Return the quantile `q` of values from their counts; None if it falls on a lost record, or there are no records.

    >>> quantile({10: 98, 70: 1}, 0.99, n_lost=1), quantile({10: 98}, 0.99, n_lost=2)
    (70, None)
    """
    total, so_far = sum(counts.values()) + n_lost, 0
    for value in sorted(counts):
        so_far += counts[value]
        if so_far >= q * total - 1e-9:
            return value
    return None


def fell_behind(late: Mapping[int, int], latency_us: Mapping[int, int]) -> bool:
    """
    Return whether the generator fell behind.

    `late` counts the records of producers or of a group by lateness in units of `LATE_UNIT_MS`, `latency_us` counts
    them by latency in µs.

    >>> fell_behind({0: 98, 60: 2}, {20_000: 100}), fell_behind({0: 98, 60: 2}, {900_000: 100})
    (True, False)
    """
    allowed_ms = max(LATE_MS, LATE_PART * (quantile(latency_us, 0.5) or 0) / 1_000)
    n_late = sum(n for value, n in late.items() if value * LATE_UNIT_MS > allowed_ms)
    return n_late > LATE_SHARE * sum(late.values())


def backlog_grew(backlog: Sequence[int], rate: float) -> bool:
    """
    Return whether acknowledgements came at less than the fraction `SUSTAINED` of the rate (records/s).

    `backlog` holds the unacknowledged records at the end of each second. Its mean over the last third of the seconds is
    compared with its mean over the first third.

    >>> backlog_grew([40, 55, 38, 60, 44, 51], 1_000), backlog_grew([40, 50, 60, 80, 90, 100], 1_000)
    (False, True)
    """
    third = len(backlog) // 3
    if not third:
        return False
    growth = (sum(backlog[-third:]) - sum(backlog[:third])) / third
    return growth > (1 - SUSTAINED) * rate * (len(backlog) - third)
