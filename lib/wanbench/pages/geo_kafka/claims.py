"""
Test source 001: throughput and cost of a strongly consistent Kafka cluster across three regions, and loss of a region.

Every number of the source is read from its file of claims, so correcting a digit there corrects the verdict.
"""

from typing import Any

from wanbench.formatting import number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import ALWAYS, DIFFERS, NEVER, SOME, Rule, apply_rules, over, under
from wanbench.methods.cost.deployment import FIXED, TOTAL, VARIABLE, ClusterCost, Deployment, cluster_cost
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.pages.geo_kafka.costs import region_copies

SOURCE = "001-geo-kafka"
# Share of the bytes that may still cross with client.rack: requests, metadata and the group's coordinator.
LOCAL = 0.02
FEW_S = 10.0  # The claim "a few seconds" means fewer than this.
HOURS_PER_MONTH = 30 * 24  # As in the source.
FULL = 0.9  # A link limits throughput if at least this share of it is used; otherwise something else does.
DWARFS = 10.0  # A cost dwarfs another one if it is at least this many times as high.
RULES = (
    Rule("consistency", "taxing", over(1)),  # throughput with acks=1 over that with acks=all
    Rule("buffers", "buffers-help", over(1)),  # with buffers of bandwidth times delay over Kafka's
    Rule("batches", "batches", DIFFERS),  # with the largest batches over the smallest
    Rule("linger", "linger", over(1)),  # with linger.ms 50 over 0
    Rule("producers", "nonlinear", DIFFERS),  # of the most producers over that of one, by their number
    Rule("producers_gain", "producers", DIFFERS),  # of the most producers over that of one
    Rule("partitions_gain", "partitions", over(1)),  # with 72 partitions over the fewest
    Rule("rack", "local", under(LOCAL)),  # bytes of consumers between regions with client.rack over without
    Rule("rack", "local-cost", under(1)),  # bytes between regions are what costs
    # Shares of episodes, of those with acknowledged records lost or undelivered:
    Rule("rpo", "rpo", NEVER),
    Rule("rpo", "at-least-once", NEVER),
    Rule("rpo", "survives", NEVER),
    Rule("service", "survives", ALWAYS),  # writes were acknowledged again before healing
    Rule("service", "lights-on", ALWAYS),
    Rule("rto", "rto", under(FEW_S)),  # seconds without service; not finite if only healing ended them
    Rule("elections", "elections", ALWAYS),
    Rule("producer_errors", "transitory", SOME),
    Rule("rearranged", "rearranged", ALWAYS),  # consumers that remain took over all partitions
    Rule("replicas_back", "heals", ALWAYS),
    Rule("leaders_back", "rebalances", ALWAYS),
    Rule("healing", "autonomous", ALWAYS),  # replicas and leaders came back, untouched
)
# Measured quantities that are shown next to a claim but cannot decide it, because the two are not comparable.
SHOWN = {
    "tuned_over_default": ("tuning",),
    "partitions": ("plateau",),  # throughput with 144 partitions over that with 72
    "consumers_cost": ("consumers-cost",),
    "gateway": ("gateway",),  # a full mesh of the same total rate: it does not lift the cap of one gateway
    "order": ("order",),  # within partitions
    "leaders": ("balanced",),  # the harness elects preferred leaders, and waits for replicas in sync
    "replicas": ("in-sync",),
    "producers_failed": ("none-fails",),
}


def geo_kafka(*, cost: ClusterCost | None = None, **measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of source 001, by arithmetic on the numbers that it prints and by measured quantities.

    cost: The cost of the measured cluster, shown without a verdict.
    **measured: Measured quantities, by their names in `RULES` and `SHOWN`. A claim without one is tested by arithmetic
        only.

    Raises ParameterError: a name of `measured` is not in `RULES` or `SHOWN`, or its value is not an estimate.

    >>> rows = geo_kafka().table().set_index("claim")
    >>> rows.own[["message-rate", "per-message", "per-hour", "rto"]].tolist()
    ['not reproduced', 'not reproduced', 'undecided', 'not tested']
    """
    audit = read_claims(SOURCE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    own_rate = "" if cost is None else f"Re-run, without a verdict, at its own rate: {cost.sentence}"
    for claim in ("per-hour", "per-message") if own_rate else ():
        audit.note(claim, own_rate)
    return audit


def source_deployment(audit: Audit, **inputs: Any) -> Deployment:
    """
    Return the cluster whose cost the source states; messages per second are its throughput over its message size.

    **inputs: Fields of `Deployment` that replace the source's numbers.
    """
    size = 1e3 * audit.number("message-size")
    names = {
        "brokers": "n-brokers",
        "instance_usd_per_hour": "instance-price",
        "disks": "n-disks",
        "disk_gb": "disk-size",
    }
    names |= {"disk_usd_per_gb_month": "disk-price", "region_usd_per_gb": "region-price"}
    own: Fields = {name: audit.number(claim) for name, claim in names.items()}
    own |= {"hours_per_month": HOURS_PER_MONTH, "messages_per_s": 1e9 * audit.number("throughput") / size}
    own |= {"message_bytes": size, "region_bytes_per_message": audit.number("crossings") * size}
    return Deployment(**own | inputs)


def own_numbers(audit: Audit) -> None:
    """Test the claims that arithmetic on the source's own numbers can test, and record the verdicts in `audit`."""
    _placement(audit)
    _rates(audit)
    _network(audit)
    _cost(audit)


def _placement(audit: Audit) -> None:
    brokers, regions, replicas = (audit.number(name) for name in ("n-brokers", "n-regions", "n-replicas"))
    tested, multiple, needed = (audit.number(name) for name in ("test-partitions", "multiple", "min-in-sync"))
    audit.compare(
        "per-region", brokers / regions, "The source's numbers: the number of brokers divided by the number of regions."
    )
    audit.compare("n-replicas", regions, "The source's numbers: one replica per region.")
    audit.compare("multiple", brokers, "The source's numbers: one partition for each broker to lead.")
    audit.compare(
        "balanced",
        multiple / brokers,
        f"The source's numbers: {number(multiple)} partitions divided by the number of brokers.",
    )
    if tested % multiple:
        audit.judge("test-partitions", False, f"{number(tested)} is not a multiple of {number(multiple)}.")
    left = replicas * (regions - 1) / regions
    follows = (
        f"The source's numbers: with {number(replicas)} replicas over {number(regions)} regions, {number(left)} remain "
        "if a region is lost"
    )
    for claim in ("survives", "lights-on"):
        working = (
            f"{follows}; min.insync.replicas is {number(needed)}. These numbers alone do not show that the cluster "
            "goes on."
        )
        audit.judge(claim, None if left >= needed else False, working)
    audit.compare("in-sync", replicas, "The source's numbers: as many in-sync replicas as there are replicas.")
    audit.compare("in-sync-during", left, f"{follows}.")
    group, each = audit.number("group-size"), audit.number("group-partitions")
    if group % regions:
        audit.judge(
            "group-size", False, f"{number(group)} is not a multiple of {number(regions)}, the number of regions."
        )
    audit.compare(
        "group-partitions",
        tested / group,
        f"The source's numbers: {number(tested)} partitions divided by {number(group)} consumers. With {number(each)} "
        f"each there would be {number(each * group)} partitions, and the source mentions no such topic.",
    )
    audit.judge("order", False, f"Kafka keeps order within a partition, and the topic has {number(tested)} partitions.")
    remaining = group * (regions - 1) / regions
    audit.judge(
        "rearranged",
        None,
        f"The source's numbers: {number(remaining)} consumers remain, with {number(tested / remaining)} partitions "
        "each.",
    )


def _rates(audit: Audit) -> None:
    """Test bytes per second, messages per second, message size and producers, which contradict each other."""
    rate, bytes_per_s = audit.number("message-rate"), 1e9 * audit.number("throughput")
    size, producers = 1e3 * audit.number("message-size"), audit.number("n-producers")
    made = f"{audit.claims['throughput'].formatted} GB/s over {audit.claims['message-rate'].formatted} messages/s"
    audit.note(
        "message-size", f"The source's numbers: {made} would mean {number(bytes_per_s / rate / 1e3)} KB per message."
    )
    audit.compare(
        "message-rate",
        bytes_per_s / size,
        f"The source's numbers: {number(bytes_per_s / 1e9)} GB/s in messages of {number(size)} bytes. The claimed "
        f"messages per second are {number(rate * size / 1e6)} MB/s, which is less by a factor of "
        f"{number(bytes_per_s / size / rate)}. Each of the {number(producers)} producers sends about as many bytes "
        f"({number(bytes_per_s / producers / 1e6)} MB/s); for consumers, too, the source states the rate of each one.",
    )
    ratio = audit.from_printed(lambda total, one: 1e9 * total / size / one, "throughput", "message-rate")
    audit.compare(
        "n-producers",
        ratio,
        "The source's numbers: the total rate divided by the size of a message and by the claimed messages per second.",
    )
    audit.compare(
        "throughput",
        rate * size * producers / 1e9,
        "The source's numbers: messages per second of one producer, times the size and the number of producers. If "
        f"the claimed rate were that of all producers, the cluster would reach {number(rate * size / 1e9)} GB/s.",
        within=audit.from_printed(lambda one: one * size * producers / 1e9, "message-rate"),
    )
    total, each = audit.number("consumer-total"), audit.number("consumer-rate")
    consumers = audit.number("n-consumers")
    audit.compare(
        "consumer-rate", 1e3 * total / consumers, "The source's numbers: the total divided by the number of consumers."
    )
    audit.compare(
        "consumer-total",
        each * consumers / 1e3,
        f"The source's numbers: {number(consumers)} times {number(each)} MB/s. Consumers can read "
        f"{number(total * 1e9 / bytes_per_s)} times what is produced only while they catch up.",
        within=audit.from_printed(lambda one: one * consumers / 1e3, "consumer-rate"),
    )
    audit.judge(
        "slower",
        None if total * 1e9 > bytes_per_s else False,
        f"The source's numbers: {number(consumers)} consumers read {number(total)} GB/s while {number(producers)} "
        f"producers write {number(bytes_per_s / 1e9)} GB/s. One case does not show that consumers are always faster, "
        "and they can read more than is written only while they catch up.",
    )
    per_s = rate * size / audit.number("test-partitions")
    filled_ms = 1e3 * 1024 * audit.number("batch-size") / per_s
    partitions = audit.number("test-partitions")
    audit.judge(
        "linger",
        None,
        f"The source's numbers: one producer's messages, sent to {number(partitions)} partitions in turn, fill a "
        f"batch in {number(filled_ms)} ms. Since Kafka 2.4 a producer fills the batch of one partition before it "
        f"turns to the next, which takes {number(filled_ms / partitions)} ms per batch.",
    )


def _network(audit: Audit) -> None:
    rate, delay_ms = audit.number("tunnel-rate"), audit.number("tunnel-latency")
    throughput, regions = audit.number("throughput"), audit.number("n-regions")
    copies = region_copies(regions=int(regions), replication=int(audit.number("n-replicas")))
    per_gateway = throughput * copies.total / regions
    audit.judge(
        "tunnel-rate",
        None,
        f"The source's numbers: {number(rate)} GB/s is {number(8 * rate)} Gbit/s. The reported throughput sends "
        f"{number(per_gateway)} GB/s out of each region before compression, which such a tunnel can carry. A tunnel "
        f"of {number(rate)} Gbit/s ({number(rate / 8)} GB/s) could not carry it.",
    )
    audit.judge(
        "gateway",
        per_gateway / rate >= FULL,
        f"Holds if the gateways were nearly full ({quantity(FULL, 'fraction')}). The source's numbers: each message "
        f"crosses between regions {number(copies.total)} times, so {number(per_gateway)} GB/s leave each region. This "
        f"traffic is {quantity(per_gateway / rate, 'fraction')} of {number(rate)} GB/s, and less with compression. A "
        f"tunnel of {number(rate)} Gbit/s could not carry this.",
    )
    audit.compare(
        "buffers",
        rate * delay_ms,
        f"The source's numbers: {number(rate)} GB/s times {number(delay_ms)} ms. If the rate is in Gbit/s, the "
        f"product is {number(rate * delay_ms / 8)} MB. Buffers are per connection, while "
        f"{audit.number('n-producers'):.0f} producers with {audit.number('n-brokers'):.0f} brokers share the rate.",
    )
    audit.judge(
        "latency",
        None,
        f"With two replicas in sync an acknowledgement takes a round trip: {number(delay_ms)} ms or more.",
    )


def _cost(audit: Audit) -> None:
    brokers, disks = audit.number("n-brokers"), audit.number("n-disks")
    own = cluster_cost(source_deployment(audit))
    audit.note("n-disks", f"The cluster has {number(disks / brokers)} disks per broker.")
    instances = brokers * audit.number("instance-price")
    audit.compare("instances", instances, "The source's numbers: the number of brokers times the price of one broker.")
    disk_usd = disks * audit.number("disk-size") * audit.number("disk-price") / HOURS_PER_MONTH
    audit.compare(
        "disks",
        disk_usd,
        "The source's numbers: the number of disks times size times price, with a month of 720 hours.",
    )
    audit.compare(
        "fixed",
        own.by[FIXED, "hour"].estimate,
        "The source's numbers: instances plus disks, without gateways, ZooKeeper's nodes, control planes and traffic "
        "between zones.",
    )
    copies = region_copies(regions=int(audit.number("n-regions")), replication=int(audit.number("n-replicas")))
    audit.compare(
        "crossings",
        copies.total,
        f"The source's numbers: a message goes to followers {number(copies.replicated)} times, and before that from a "
        f"producer to a leader in another region {number(copies.produced)} times, because producers and leaders are "
        "in all regions.",
    )
    full = cluster_cost(
        source_deployment(audit, region_bytes_per_message=copies.total * 1e3 * audit.number("message-size"))
    )
    for claim, part in (("variable", VARIABLE), ("per-hour", TOTAL)):
        sums = [each.by[part, "hour"].estimate for each in (own, full)]
        agree = [abs(usd - audit.number(claim)) <= audit.claims[claim].half_step for usd in sums]
        audit.judge(
            claim,
            all(agree) or (None if agree[0] else False),
            f"The source's numbers: {number(sums[0])} USD/h if a message crosses between regions "
            f"{number(audit.number('crossings'))} times, as the source states, and {number(sums[1])} USD/h if it "
            f"crosses {number(copies.total)} times, the mean if leaders are spread evenly over regions. Compression, "
            "which the source uses but does not count, reduces this cost by a ratio that the source does not state.",
        )
    _per_message(audit)
    ratio = own.variable_over_fixed.estimate if own.variable_over_fixed else float("inf")
    audit.judge(
        "dwarfed",
        ratio >= DWARFS,
        f"Holds if the variable cost is at least {number(DWARFS)} times the fixed cost. The source's numbers: at the "
        f"full rate it is already {number(ratio)} times the fixed cost. The fixed and the variable cost are equal at "
        f"{number(own.even_messages_per_s)} messages/s, {quantity(1 / ratio, 'fraction')} of the full rate.",
    )
    regions, price = audit.number("n-regions"), audit.number("region-price")
    read = audit.number("consumer-total") * (regions - 1) / regions
    audit.judge(
        "local-cost",
        price > 0,
        "Holds if traffic between regions has a price. The source's numbers: if consumers read from random replicas, "
        f"{number(read)} GB/s would cross between regions, for {number(read * 3600 * price)} USD/h.",
    )


def _per_message(audit: Audit) -> None:
    """Test the claimed cost of a message: the source divided the cluster's cost by one producer's messages."""
    hour, rate = audit.number("per-hour"), audit.number("message-rate")
    size, throughput = 1e3 * audit.number("message-size"), 1e9 * audit.number("throughput")
    whole = hour / (throughput / size * 3600)
    as_claimed = hour / (rate * 3600)
    as_total = cluster_cost(source_deployment(audit, messages_per_s=rate)).by[TOTAL, "million messages"].estimate / 1e6
    audit.compare(
        "per-message",
        whole,
        f"The source's numbers: {number(hour)} USD/h over the messages in an hour at {number(throughput / 1e9)} GB/s. "
        f"The claimed number is {number(hour)} USD divided by {number(rate)} messages/s ({as_claimed:.3g} USD), which "
        f"is the cost of all producers divided by the messages of one. If {number(rate)} messages/s were the total, "
        f"traffic would be less too, and a message would cost {as_total:.3g} USD; only messages of "
        f"{number(throughput / rate / 1e3)} KB cost what is claimed.",
    )
