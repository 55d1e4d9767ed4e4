"""
Decide from counts whether an open-loop load is valid: whether its generator kept its schedule, without waiting for
earlier records.

The generator fell behind if its producers handed more than 1 % of the records to the Kafka client too late, or if one
of its consumer groups left more than 1 % waiting in the client for too long. Too late or too long means: by more than 5
ms and more than 5 % of the median latency (to the acknowledgement, or end to end). The 99th percentile of latency may
then be due to the generator. Waits for a full queue do not count. A shorter delay may be a time slice of a busy
processor, or is too small a part of the latency to change a conclusion.
"""

from collections.abc import Mapping

LATE_SHARE = 0.01
LATE_MS = 5.0
LATE_PART = 0.05
LATE_UNIT_MS = 0.1  # unit of the programs' counts of lateness


def quantile(counts: Mapping[int, int], q: float, n_lost: int = 0) -> int | None:
    """
    Return the quantile `q` (from 0 to 1) of values, from the number of records with each value.

    A lost record ranks above all values. Return None if the quantile is that of a lost record, or without records.

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
    Return whether the generator's producers, or one of its consumer groups, fell behind.

    `late` counts their records by lateness in units of `LATE_UNIT_MS`, `latency_us` by latency in µs.

    >>> fell_behind({0: 98, 60: 2}, {20_000: 100}), fell_behind({0: 98, 60: 2}, {900_000: 100})
    (True, False)
    """
    allowed_ms = max(LATE_MS, LATE_PART * (quantile(latency_us, 0.5) or 0) / 1_000)
    n_late = sum(n for value, n in late.items() if value * LATE_UNIT_MS > allowed_ms)
    return n_late > LATE_SHARE * sum(late.values())
