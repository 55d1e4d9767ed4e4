"""Resource limits of a broker on its host, and their price: an emulated instance type."""

from __future__ import annotations

from dataclasses import dataclass

from wanbench.checks import check_fields, refusal

SMALLEST_SHARE = 0.01
"""The kernel's minimum quota is 1 ms in its period of 100 ms."""
MOST_PROCESSORS = 1_024


@dataclass(frozen=True)
class BrokerSize:
    """
    The size of a broker.

    Parameters
    ----------
    name : str
        Brokers of one name have one size.
    processors : float, optional
        Number of processors: 0.5 is half of one, 2 are two. The limit is a quota of a control group
        where the kernel has one, which stops all threads of the broker once they have used up their
        share of 100 ms; otherwise, and only below 1, the process is stopped and continued: see
        `wanbench.measure.kafka.programs.processor_share`. None: no limit.
    link_bps : float, optional
        Rate of the host's network, in bit/s: all that leaves its region shares it, and each link into the region has
        it. For a region with one broker. None: the links stay as they are.
    disk_bps : float, optional
        Rate of the disk, in bit/s of data. No lab can give it yet: a trial that asks for it is refused, with why.
    price_usd_per_hour : float, optional
        Price of one such broker. It does not affect measurements.
    """

    name: str
    processors: float | None = None
    link_bps: float | None = None
    disk_bps: float | None = None
    price_usd_per_hour: float | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise refusal("BrokerSize name", self.name, "one line of text")
        check_fields(
            self,
            ("processors", SMALLEST_SHARE, MOST_PROCESSORS),
            ("link_bps", 1000, 1e12),
            ("disk_bps", 1000, 1e12),
            ("price_usd_per_hour", 0, 1e6),
            optional=("processors", "link_bps", "disk_bps", "price_usd_per_hour"),
        )

    def __str__(self) -> str:
        parts = [f"{self.processors:g} processors"] if self.processors is not None else []
        parts += [f"{self.link_bps / 1e6:g} Mbit/s"] if self.link_bps is not None else []
        parts += [f"disk {self.disk_bps / 1e6:g} Mbit/s"] if self.disk_bps is not None else []
        return f"{self.name} ({', '.join(parts) or 'no limit'})"


def sizes_by_broker(sizes, n_brokers: int) -> tuple[BrokerSize | None, ...]:
    """
    The size of each broker, in order; `sizes` is one for all, or a tuple with one or None for each.

    >>> [size and size.name for size in sizes_by_broker((BrokerSize("large"), None), 2)]
    ['large', None]
    """
    if isinstance(sizes, BrokerSize):
        return (sizes,) * n_brokers
    if len(sizes) != n_brokers:
        raise refusal("broker_sizes", sizes, f"one size, or one for each of {n_brokers} brokers")
    return tuple(sizes)


def checked_sizes(sizes):
    """One size, a tuple of sizes and None (lists become tuples), or None; ParameterError for anything else."""
    if sizes is None or isinstance(sizes, BrokerSize):
        return sizes
    known = isinstance(sizes, list | tuple) and all(size is None or isinstance(size, BrokerSize) for size in sizes)
    if known and any(sizes):
        return tuple(sizes)
    raise refusal("broker_sizes", sizes, "a BrokerSize, a tuple with a BrokerSize or None per broker, or None")
