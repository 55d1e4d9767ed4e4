"""Plan trials with the same load on brokers of several sizes (processors and link rate)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wanbench.checks import check_number, refusal
from wanbench.measure.experiments import KafkaLoad, KafkaOpenLoop, KafkaTrial
from wanbench.measure.kafka import BrokerSize

ONE_LARGE = "one large"
Placement = tuple[tuple[int, ...], ...]  # The brokers of each partition.
STARTING_S = 5.0  # while Java starts, which keeps processors busy, records of a trickle may be late
LONGEST_S = 3600.0  # a trickle ends with its load; its clients keep a byte for each record that might come


def sizes_of_brokers(
    sizes: Mapping[str, Sequence[float]],
    load: KafkaLoad,
    *,
    brokers: int,
    usd_per_processor_hour: float,
    duration_s: float,
    warmup_s: float,
    clients_in: Sequence[str],
    alongside: Sequence[object] = (),
    trickle_records_per_s: float = 0,
    one_large: float = 0,
    usd_per_hour: Mapping[str, float] | None = None,
) -> dict[str, KafkaTrial]:
    """
    Make one trial per size, in which all brokers have that size, and return the trials by the name of the size.

    After a warm-up of `warmup_s`, unthrottled producers send as many records as the size's links carry in `duration_s`.
    So trials of all sizes take about the same time and end by themselves. Otherwise Kafka's tools print no quantiles.

    Parameters
    ----------
    sizes : mapping of str to (processors, Mbit/s)
        Processors and link rate of one broker, by the name of the size; with burst credit also the rate of bursts in
        Mbit/s and the credit in MB, which adds records to the load.
    load : KafkaLoad
        The load of every trial; its `records` are replaced.
    brokers : int
        Number of brokers, each in a separate region.
    usd_per_processor_hour : float
        Price of a processor; a size costs this times its processors, network included.
    trickle_records_per_s : float
        If not 0, this many records of 100 bytes are sent meanwhile on schedule, to one partition on each loaded broker.
    one_large : float
        If not 0, adds the trial "one large", in which one broker leads all partitions. It has the processors, rate and
        price of the first size, multiplied by this number. The other brokers have no size, no price and no load.
    usd_per_hour : mapping of str to float, optional
        Prices by size, if sizes are instance types of rented hosts. The cluster then has `brokers` of each type, in the
        order of `sizes`, and each trial uses the brokers of one type. Processors and links are not limited; Mbit/s are
        only the expected rates.

    Examples
    --------
    >>> load = KafkaLoad(records=1, duration_s=None, record_bytes=500)
    >>> about = {"brokers": 3, "usd_per_processor_hour": 0.05, "duration_s": 10, "warmup_s": 0, "clients_in": ["a"]}
    >>> trials = sizes_of_brokers({"small": (0.3, 20)}, load, one_large=3, **about)
    >>> [(name, trial.load.records) for name, trial in trials.items()]
    [('small', 150000), ('one large', 150000)]
    >>> trials["one large"].broker_sizes[0].price_usd_per_hour
    0.045
    """
    check_number("brokers", brokers, 1, whole=True)
    for name, values in sizes.items():
        if isinstance(values, str) or len(values) not in ((2, 4) if usd_per_hour is None else (2,)):
            raise refusal(f"size {name}", values, "processors and Mbit/s, or also Mbit/s and MB of bursts")

    def trial(
        each: tuple[BrokerSize | None, ...], placement: Placement | None = None, rate_bps: float | None = None
    ) -> KafkaTrial:
        rate_bps = rate_bps or sum(size.link_bps for size in each if size)
        records_per_s = rate_bps / 8 / load.record_bytes / load.producers
        # in a burst a link carries its credit, and meanwhile its baseline
        bursts = [size.burst_bytes / (1 - size.link_bps / size.burst_bps) for size in each if size and size.burst_bps]
        extra = sum(bursts) / load.record_bytes / load.producers
        records = {"records": int(records_per_s * duration_s + extra)}
        records["warmup_records"] = int(records_per_s * warmup_s)
        return KafkaTrial(
            replace(load, placement=placement, **records),
            client_regions=tuple(clients_in),
            alongside=tuple(alongside),
            trickle=trickle(placement) if trickle_records_per_s else None,
            broker_sizes=each,
        )

    def trickle(placement: Placement | None) -> KafkaOpenLoop:
        led = tuple(dict.fromkeys(placement or [(broker + 1,) for broker in range(brokers)]))
        about: dict[str, Any] = {"partitions": len(led), "placement": led, "replication": 1, "groups": 1}
        about |= {"acks": load.acks, "record_bytes": 100, "linger_ms": 0, "drain_s": 2}
        about |= {"warmup_s": STARTING_S, "duration_s": LONGEST_S}
        return KafkaOpenLoop(trickle_records_per_s, **about)

    def size(name: str, processors: float, mbps: float, burst_mbps: float = 0, credit_mb: float = 0):
        usd = round(processors * usd_per_processor_hour, 6)
        burst = {"burst_bps": burst_mbps * 1e6, "burst_bytes": credit_mb * 1e6} if burst_mbps else {}
        return BrokerSize(name, round(processors, 6), mbps * 1e6, price_usd_per_hour=usd, **burst)

    def of_type(number: int, name: str, processors: float, mbps: float):
        own = range(number * brokers, (number + 1) * brokers)
        size = BrokerSize(name, price_usd_per_hour=(usd_per_hour or {})[name])
        each = tuple(size if broker in own else None for broker in range(brokers * len(sizes)))
        placement = tuple((own[partition % brokers] + 1,) for partition in range(load.partitions))
        return trial(each, placement, brokers * mbps * 1e6)

    if usd_per_hour is not None:
        return {name: of_type(number, name, *values) for number, (name, values) in enumerate(sizes.items())}
    trials = {name: trial((size(name, *values),) * brokers) for name, values in sizes.items()}
    if one_large:
        first = (one_large * value for value in next(iter(sizes.values()))[:2])
        alone = (size(ONE_LARGE, *first), *[None] * (brokers - 1))
        trials[ONE_LARGE] = trial(alone, placement=((1,),) * load.partitions)
    return trials
