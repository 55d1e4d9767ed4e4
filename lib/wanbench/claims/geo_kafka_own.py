"""
Source 001 tested on its own numbers: are they consistent, and do its sentences follow from them?

Every number is read from its claims, so correcting a digit there corrects the verdict here. A number computed from
printed ones has an interval that covers their rounding.
"""

from __future__ import annotations

from ..formatting import number, quantity
from ..stats.cost.cluster_cost import cluster_cost
from ..stats.cost.deployment import FIXED, TOTAL, VARIABLE, Deployment
from ..stats.cost.region_copies import region_copies
from .ledger import Audit
from .printed import RERUN_ONLY, SETTING, claimed, from_printed

HOURS_PER_MONTH = 30 * 24
"""As the source converts."""
FULL = 0.9
"""A limit that throughput is held by is nearly used up; below nine tenths of it, something else holds."""
DWARFS = 10.0
"""A cost dwarfs another one that is a tenth of it."""


def source_deployment(audit: Audit, **inputs) -> Deployment:
    """
    The cluster that the source prices, with its own numbers; its rate is bytes per second over message size.

    Parameters
    ----------
    **inputs
        In place of the source's: fields of `stats.cost.Deployment`.
    """
    size = 1e3 * claimed(audit, "message-size")
    own = {
        "brokers": claimed(audit, "n-brokers"),
        "instance_usd_per_hour": claimed(audit, "instance-price"),
        "disks": claimed(audit, "n-disks"),
        "disk_gb": claimed(audit, "disk-size"),
        "disk_usd_per_gb_month": claimed(audit, "disk-price"),
        "hours_per_month": HOURS_PER_MONTH,
        "messages_per_s": 1e9 * claimed(audit, "throughput") / size,
        "message_bytes": size,
        "region_bytes_per_message": claimed(audit, "crossings") * size,
        "region_usd_per_gb": claimed(audit, "region-price"),
    }
    return Deployment(**own | inputs)


def own_numbers(audit: Audit) -> None:
    """Test every claim on the source's own numbers, or say why that is impossible."""
    _left(audit)
    _placement(audit)
    _rates(audit)
    _network(audit)
    _cost(audit)
    _untold(audit)


def _left(audit: Audit) -> None:
    submariner = "Needs Submariner between OpenShift clusters; here regions are joined by emulated links."
    audit.leave("double-encryption", submariner)
    audit.leave("gateways", submariner)
    audit.leave(
        "n-zookeepers", "Kafka 4 has no ZooKeeper: here brokers hold the metadata themselves (KRaft)."
    )
    audit.leave("developers", "Needs developers.")
    audit.leave("caps", "Needs hosts on clouds.")
    audit.leave("improve", "A guess about versions to come.")
    audit.leave("best-cloud", "Needs hosts on several clouds; the source gives no figures of others.")
    audit.leave(
        "reproducible",
        "Needs OpenShift and an account at Google Cloud; what can be repeated of it "
        "on one machine is this study.",
    )


def _placement(audit: Audit) -> None:
    brokers, regions, replicas = (claimed(audit, name) for name in ("n-brokers", "n-regions", "n-replicas"))
    tested, multiple = claimed(audit, "test-partitions"), claimed(audit, "multiple")
    audit.judge("n-brokers", None, SETTING)
    audit.judge("n-regions", None, SETTING)
    audit.compare("n-replicas", regions, "Own numbers: one replica per region.")
    audit.judge("one-layer", True, "Kafka's only setting for it is broker.rack, one text per broker.")
    audit.judge("encryption", None, SETTING)
    audit.compare("multiple", brokers, "Own numbers: one partition to lead per broker.")
    audit.compare(
        "balanced", multiple / brokers, f"Own numbers: {number(multiple)} partitions over the brokers."
    )
    even = tested % multiple == 0
    audit.judge(
        "test-partitions",
        None if even else False,
        f"{SETTING} {number(tested)} is {'a' if even else 'no'} multiple of {number(multiple)}.",
    )
    left = replicas * (regions - 1) / regions
    follows = (
        f"Own numbers: with {number(replicas)} replicas over {number(regions)} regions, {number(left)} remain"
    )
    audit.judge("survives", None, f"{follows}; min.insync.replicas is 2.")
    audit.compare("in-sync", replicas, "Own numbers: as many as there are replicas.")
    audit.compare("in-sync-during", left, f"{follows}.")
    enough = left >= 2
    audit.judge("lights-on", None if enough else False, f"{follows}; min.insync.replicas is 2.")
    group, each = claimed(audit, "group-size"), claimed(audit, "group-partitions")
    audit.judge(
        "group-size",
        None if group % regions == 0 else False,
        f"{SETTING} {number(group / regions)} per region.",
    )
    audit.compare(
        "group-partitions",
        tested / group,
        f"Own numbers: {number(tested)} partitions over {number(group)} consumers; {number(each)} each would be "
        f"{number(each * group)} partitions, a topic that the source does not mention.",
    )


def _rates(audit: Audit) -> None:
    """Bytes per second, messages per second, size and producers do not agree: which reading makes them agree?"""
    rate, bytes_per_s = claimed(audit, "message-rate"), 1e9 * claimed(audit, "throughput")
    size, producers = 1e3 * claimed(audit, "message-size"), claimed(audit, "n-producers")
    audit.judge("message-size", None, f"{SETTING} {_size(audit)}")
    audit.compare(
        "message-rate",
        bytes_per_s / size,
        f"Own numbers: {number(bytes_per_s / 1e9)} GB/s in messages of {number(size)} bytes. The claimed number is "
        f"{number(rate * size / 1e6)} MB/s, {number(bytes_per_s / size / rate)} times less: what one of the "
        f"{number(producers)} producers sends ({number(bytes_per_s / producers / 1e6)} MB/s), as the source "
        "gives it of consumers.",
    )
    ratio = from_printed(audit, lambda total, one: 1e9 * total / size / one, "throughput", "message-rate")
    audit.compare(
        "n-producers", ratio, "Own numbers: total bytes over the size and the claimed messages per second."
    )
    audit.compare(
        "throughput",
        rate * size * producers / 1e9,
        "Own numbers: messages per second, taken as one producer's, times size and producers; taken as the total they "
        f"make {number(rate * size / 1e9)} GB/s.",
        within=from_printed(audit, lambda one: one * size * producers / 1e9, "message-rate"),
    )
    total, each = claimed(audit, "consumer-total"), claimed(audit, "consumer-rate")
    consumers = claimed(audit, "n-consumers")
    audit.judge("n-consumers", None, SETTING)
    audit.compare("consumer-rate", 1e3 * total / consumers, "Own numbers: the total over the consumers.")
    audit.compare(
        "consumer-total",
        each * consumers / 1e3,
        f"Own numbers: {number(consumers)} times {number(each)} MB/s. That is "
        f"{number(total * 1e9 / bytes_per_s)} times what is produced, which can last only while consumers catch up.",
        within=from_printed(audit, lambda one: one * consumers / 1e3, "consumer-rate"),
    )
    audit.judge(
        "slower",
        total * 1e9 > bytes_per_s,
        f"Holds if consumers read more than producers write: {number(total)} against {number(bytes_per_s / 1e9)} GB/s, "
        f"with {number(consumers)} and {number(producers)} clients.",
    )


def _size(audit: Audit) -> str:
    made = 1e9 * claimed(audit, "throughput") / claimed(audit, "message-rate")
    return (
        f"Own numbers: {audit.claims['throughput'].written} GB/s over {audit.claims['message-rate'].written} "
        f"messages/s would make {number(made / 1e3)} KB a message."
    )


def _network(audit: Audit) -> None:
    rate, delay_ms = claimed(audit, "tunnel-rate"), claimed(audit, "tunnel-latency")
    throughput, regions = claimed(audit, "throughput"), claimed(audit, "n-regions")
    copies = region_copies(regions=int(regions), replication=int(claimed(audit, "n-replicas")))
    per_gateway = throughput * copies.total / regions
    audit.judge(
        "tunnel-rate",
        None,
        f"Own numbers: {number(rate)} GB/s is {number(8 * rate)} Gbit/s. The reported throughput sends "
        f"{number(per_gateway)} GB/s out of each region before compression, which fits; {number(rate)} Gbit/s, "
        f"{number(rate / 8)} GB/s, would not carry it.",
    )
    audit.judge("tunnel-latency", None, "Whether this is one way or a round trip is not said.")
    audit.judge(
        "gateway",
        None if per_gateway / rate >= FULL else False,
        f"Holds if the gateways were nearly full ({quantity(FULL, 'fraction')}). Own numbers: each message crosses "
        f"between regions {number(copies.total)} times, so {number(per_gateway)} of {number(rate)} GB/s leave each "
        f"region, {quantity(per_gateway / rate, 'fraction')}; compression makes that less. A tunnel of "
        f"{number(rate)} Gbit/s would be overfull.",
    )
    audit.compare(
        "buffers",
        rate * delay_ms,
        f"Own numbers: {number(rate)} GB/s times {number(delay_ms)} ms. If the rate is in Gbit/s it is "
        f"{number(rate * delay_ms / 8)} MB; and buffers are per connection, while {claimed(audit, 'n-producers'):.0f} "
        f"producers with {claimed(audit, 'n-brokers'):.0f} brokers share the rate.",
    )
    audit.judge(
        "latency",
        None,
        f"With two replicas in sync an acknowledgement takes a round trip: {number(delay_ms)} ms or more.",
    )


def _cost(audit: Audit) -> None:
    brokers, disks = claimed(audit, "n-brokers"), claimed(audit, "n-disks")
    own = cluster_cost(source_deployment(audit))
    for name in ("instance-price", "disk-price", "region-price"):
        audit.judge(name, None, "A list price of 2021, in data/published/prices.")
    audit.judge("n-disks", None, f"{SETTING} {number(disks / brokers)} per broker.")
    audit.judge("disk-size", None, SETTING)
    instances = brokers * claimed(audit, "instance-price")
    audit.compare("instances", instances, "Own numbers: brokers times price.")
    disk_usd = disks * claimed(audit, "disk-size") * claimed(audit, "disk-price") / HOURS_PER_MONTH
    audit.compare("disks", disk_usd, "Own numbers: disks times size times price, a month of 720 hours.")
    audit.compare(
        "fixed",
        own.by[FIXED, "hour"].estimate,
        "Own numbers: instances and disks; without gateways, ZooKeeper's nodes, control planes, traffic between zones.",
    )
    copies = region_copies(
        regions=int(claimed(audit, "n-regions")), replication=int(claimed(audit, "n-replicas"))
    )
    audit.compare(
        "crossings",
        copies.total,
        f"Own numbers: to followers {number(copies.replicated)} times, and before that from a producer to a leader in "
        f"another region {number(copies.produced)} times, because producers and leaders are in all regions.",
    )
    full = cluster_cost(
        source_deployment(audit, region_bytes_per_message=copies.total * 1e3 * claimed(audit, "message-size"))
    )
    audit.compare(
        "variable",
        own.by[VARIABLE, "hour"].estimate,
        f"Own numbers, a message that crosses {number(claimed(audit, 'crossings'))} times; at {number(copies.total)} "
        f"times it is {number(full.by[VARIABLE, 'hour'].estimate)} USD. Compression is not counted.",
    )
    audit.compare("per-hour", own.by[TOTAL, "hour"].estimate, "Own numbers: fixed and variable.")
    _per_message(audit)
    ratio = own.variable_over_fixed.estimate
    audit.judge(
        "dwarfed",
        ratio >= DWARFS,
        f"Holds if variable is at least {number(DWARFS)} times fixed cost. Own numbers: {number(ratio)} times already, "
        f"at the full rate; both are equal at {number(own.even_messages_per_s)} messages/s, "
        f"{quantity(1 / ratio, 'fraction')} of it.",
    )
    audit.judge(
        "local-cost",
        True,
        f"Own numbers: read at random, {_remote_reading(audit)} would cross between regions.",
    )
    audit.judge(
        "benchmark",
        None,
        "An opinion. The cost of a message goes with its size and with how full the cluster is, so it compares "
        "deployments only at the same of both.",
    )


def _remote_reading(audit: Audit) -> str:
    regions = claimed(audit, "n-regions")
    rate = claimed(audit, "consumer-total") * (regions - 1) / regions
    usd = rate * 3600 * claimed(audit, "region-price")
    return f"{number(rate)} GB/s of what consumers read, {number(usd)} USD/h,"


def _per_message(audit: Audit) -> None:
    """110 USD an hour over 81,000 messages per second: the number is that of one producer."""
    hour, rate = claimed(audit, "per-hour"), claimed(audit, "message-rate")
    size, throughput = 1e3 * claimed(audit, "message-size"), 1e9 * claimed(audit, "throughput")
    whole = hour / (throughput / size * 3600)
    as_claimed = hour / (rate * 3600)
    as_total = (
        cluster_cost(source_deployment(audit, messages_per_s=rate)).by[TOTAL, "million messages"].estimate
        / 1e6
    )
    audit.compare(
        "per-message",
        whole,
        f"Own numbers: {number(hour)} USD over an hour's messages at {number(throughput / 1e9)} GB/s. The "
        f"claimed number is {number(hour)} USD over {number(rate)} messages/s ({as_claimed:.3g} USD): the "
        f"cost of all over messages of one producer. If {number(rate)} were the total, traffic would be less too, and "
        f"a message would cost {as_total:.3g} USD; only messages of "
        f"{number(throughput / rate / 1e3)} KB cost what is claimed.",
    )


def _untold(audit: Audit) -> None:
    """Sentences without figures: only a re-run can test them."""
    for name in (
        "at-least-once", "taxing", "tuning", "lz4", "compression-processor", "compression-bytes",
        "buffers-help", "producers", "nonlinear", "batches", "partitions", "plateau", "storage", "consumers-cost",
        "local", "local-latency", "elections", "transitory", "none-fails", "heals", "rebalances", "autonomous", "rpo",
        "rto",
    ):  # fmt: skip
        audit.judge(name, None, RERUN_ONLY)
    audit.judge("exactly-once", None, "A matter of words: Kafka's transactions hold for what stays in Kafka.")
    audit.judge("linear", None, f"{RERUN_ONLY} Neither does it vary the number of brokers.")
    audit.judge("batch-size", None, SETTING)
    audit.judge(
        "order",
        False,
        f"Kafka keeps order within a partition, and the topic has {number(claimed(audit, 'test-partitions'))}.",
    )
    rate, partitions = claimed(audit, "message-rate"), claimed(audit, "test-partitions")
    per_s = rate * 1e3 * claimed(audit, "message-size") / partitions
    filled_ms = 1e3 * 1024 * claimed(audit, "batch-size") / per_s
    audit.judge(
        "linger",
        None,
        f"Own numbers: one producer's messages, over {number(partitions)} partitions by turns, fill a batch in "
        f"{number(filled_ms)} ms; partition by partition, as since Kafka 2.4, in {number(filled_ms / partitions)} ms.",
    )
    regions = claimed(audit, "n-regions")
    left = claimed(audit, "group-size") * (regions - 1) / regions
    audit.judge(
        "rearranged",
        None,
        f"Own numbers: {number(left)} consumers remain, with {number(partitions / left)} partitions each.",
    )
