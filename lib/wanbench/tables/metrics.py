"""Tables of what hosts, brokers and links reported of themselves during measurements."""

from __future__ import annotations

from .context import CONTEXT
from .declare import column, declare

declare(
    "metrics",
    "one value of one metric at one time",
    *CONTEXT,
    column(
        "source",
        "text",
        "",
        "its source: sysstat, prometheus, process, processors, producer, consumer, circuit, cloudwatch",
    ),
    column("host", "text?", "", "the host that it is about; several, with ', ' between, if they share it"),
    column("node_id", "count?", "", "Kafka's number of the broker that it is about; null: about no broker"),
    column("at_utc", "time?", "UTC", "its time, or the end of its interval; null: over the whole test"),
    column("interval_s", "number?", "s", "the time that it covers; null: at an instant, or not known"),
    column("subject", "text", "", "what it is about: cpu all, net wan0, disk sda, or the metric's labels"),
    column("metric", "text", "", "its name, as its source calls it"),
    column("statistic", "text?", "", "how the value sums up its interval, such as Sum; null: by name"),
    column("value", "number", "see unit", "its value", minimum=None),
    column("unit", "text", "", "unit of the value; empty where it has none or the source does not say"),
    column("cumulative", "flag", "", "a counter since the process started, not a rate or a level"),
)
declare(
    "broker_pauses",
    "one time at which a node of a cluster stood still, or did something that requests may have waited for",
    CONTEXT[0],
    column("node_id", "count?", "", "Kafka's number of the node; null: the file's name does not say"),
    column("at_s", "number", "Unix s", "its start by the node's clock: the time of its line less its duration"),
    column("duration_ms", "number", "ms", "how long it took; of rolls and snapshots in whole ms"),
    column(
        "kind",
        "text",
        "",
        "gc: a collection, all threads stopped; safepoint: all threads stopped for whatever reason, from the request "
        "on; roll: a new log segment, appends to the partition wait; snapshot: state of producers written",
        allowed=("gc", "safepoint", "roll", "snapshot"),
    ),
    column("text", "text", "", "cause of the collection or safepoint, or the partition"),
    CONTEXT[-1],
)
declare(
    "device_counters",
    "what the kernel carried and dropped at one device of an emulated region, in one session of its lab",
    *CONTEXT,
    column("region", "text", "", "the region whose device it is"),
    column("device", "text", "", "wan0: towards the other regions; lo: within the region"),
    column("packets_received", "count", "packets", "that the device received; a TCP super-packet is one"),
    column("packets_dropped_receiving", "count", "packets", "dropped by the kernel: no room, or no taker"),
    column("packets_sent", "count", "packets", "that the device sent; a TCP super-packet is one"),
    column("packets_dropped_sending", "count", "packets", "dropped because the relay was late to read them"),
)
declare(
    "link_samples",
    "what one direction of an emulated link had carried by one time of a test, since the lab opened",
    *CONTEXT,
    column("at_s", "number", "Unix s", "the middle between request and response"),
    column("link_from", "text", "", "region whose packets take this link"),
    column("link_to", "text", "", "region they arrive in"),
    column("rate_bps", "number?", "bit/s", "its rate limit then; null: none"),
    column("packets_sent", "count", "packets", "that entered the link"),
    column("bytes_sent", "count?", "bytes", "that entered the link"),
    column("packets_delivered", "count", "packets", "that left it"),
    column("bytes_delivered", "count", "bytes", "that left it"),
    column("packets_lost", "count", "packets", "dropped by the link's random loss"),
    column("bytes_lost", "count?", "bytes", "dropped by the link's random loss, after using its rate"),
    column("packets_queue_dropped", "count", "packets", "dropped because the queue was full"),
    column("packets_cut", "count?", "packets", "dropped because the link was cut"),
    column("packets_device_dropped", "count?", "packets", "refused by the device of the other end"),
    column("bytes_backlog", "count?", "bytes", "that waited for the rate; null: not known"),
    column("answer_ms", "number?", "ms", "from request to response, of the slowest request of the sample"),
)
