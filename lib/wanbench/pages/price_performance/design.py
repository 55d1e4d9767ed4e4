"""Plan trials with the same load on brokers of several sizes (processors and link rate)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wanbench.checks import check_number, refusal
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.measure.kafka import BrokerSize

ONE_LARGE = "one large"


def sizes_of_brokers(
    sizes: Mapping[str, Sequence[float]],
    load: KafkaLoad,
    *,
    brokers: int,
    usd_per_processor_hour: float,
    duration_s: float,
    warmup_s: float,
    clients_in: Sequence[str],
    alongside: tuple = (),
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
        Processors and link rate of one broker, by the name of the size.
    load : KafkaLoad
        The load of every trial; its `records` are replaced.
    brokers : int
        Number of brokers, each in a separate region.
    usd_per_processor_hour : float
        Price of a processor; a size costs this times its processors, network included.
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
        if isinstance(values, str) or len(values) != 2:
            raise refusal(f"size {name}", values, "its processors and its Mbit/s")

    def trial(each: tuple, placement=None, rate_bps: float | None = None):
        rate_bps = rate_bps or sum(size.link_bps for size in each if size)
        records_per_s = rate_bps / 8 / load.record_bytes / load.producers
        records: dict = {"records": int(records_per_s * duration_s), "warmup_records": int(records_per_s * warmup_s)}
        return KafkaTrial(
            replace(load, placement=placement, **records),
            client_regions=tuple(clients_in),
            alongside=alongside,
            broker_sizes=each,
        )

    def size(name: str, processors: float, mbps: float):
        usd = round(processors * usd_per_processor_hour, 6)
        return BrokerSize(name, round(processors, 6), mbps * 1e6, price_usd_per_hour=usd)

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
        first = (one_large * value for value in next(iter(sizes.values())))
        alone = (size(ONE_LARGE, *first), *[None] * (brokers - 1))
        trials[ONE_LARGE] = trial(alone, placement=((1,),) * load.partitions)
    return trials
