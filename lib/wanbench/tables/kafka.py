"""Tables of Kafka: trials, output of the perf tools, other benchmarks' results."""

from __future__ import annotations

from .context import CONTEXT, RUN
from .declare import column, declare

_QUANTILES = (("p50", "median"), ("p95", "95th percentile"), ("p99", "99th percentile"), ("p999", "99.9th percentile"))


def _latency(what: str, *names: str):
    """Nullable columns of a latency: its mean, maximum and quantiles, as a tool printed them."""
    known = {"mean": "mean", "max": "maximum", **dict(_QUANTILES)}
    return [column(f"{name}_latency_ms", "number?", "ms", f"{known[name]} {what}") for name in names]


declare(
    "trials",
    "one setting of link, topic and clients that was planned to be measured once",
    RUN,
    column("test_id", "text", "", "the test: ordinal in the plan, from, to"),
    column("block", "count?", "", "block of the design; trials of a block are close in time"),
    column("setting", "text?", "", "the setting's name, such as the arm of a comparison"),
    column("from_region", "text", "", "region of the producers"),
    column("to_region", "text", "", "region of the brokers that answer them"),
    column("delay_ms", "number?", "ms", "one-way delay of the link, requested; null: left as it was"),
    column("jitter_ms", "number?", "ms", "spread of the one-way delay, requested"),
    column("loss", "number?", "fraction", "packets lost at random, requested", maximum=1),
    column("rate_bps", "number?", "bit/s", "rate of the link, requested; null: none"),
    column("background_bps", "number?", "bit/s", "iperf3 traffic concurrent with the load, requested; null: none"),
    column("topics", "count?", "", "topics of the load"),
    column("partitions", "count?", "", "partitions of each topic"),
    column("replication", "count?", "", "replicas of each partition"),
    column("producers", "count?", "", "producer processes"),
    column("consumer_groups", "count?", "", "consumer groups, each reading everything"),
    column("consumers", "count?", "", "consumer processes of each group"),
    column("acks", "text?", "", "acknowledgements that a producer waits for: 0, 1 or all"),
    column("batch_bytes", "count?", "bytes", "batch.size of the producers"),
    column("linger_ms", "number?", "ms", "linger.ms of the producers"),
    column("compression", "text?", "", "compression.type of the producers"),
    column("record_bytes", "count?", "bytes", "payload of one record"),
    column("target_records_per_s", "number?", "records/s", "rate requested of each producer; null: no limit"),
    column("duration_s", "number?", "s", "time that counts, after the warm-up; null: ends by count"),
    column("payload", "text?", "", "kind of the records: letters, json, log, random"),
    column("max_in_flight", "count?", "", "max.in.flight.requests.per.connection of the producers"),
    column("min_insync", "count?", "", "min.insync.replicas of topics, or else of brokers; null: Kafka's default"),
    column("client_rack", "text?", "", "client.rack of the consumers; region: that of each; null: none"),
    column("client_regions", "count?", "", "regions that clients are spread over; null: those of the pair"),
    column(
        "client_send_buffer_bytes",
        "count?",
        "bytes",
        "send.buffer.bytes of the producers; -1: the kernel decides; null: Kafka's default",
        minimum=-1,
    ),
    column(
        "client_receive_buffer_bytes",
        "count?",
        "bytes",
        "receive.buffer.bytes of the consumers; -1: the kernel decides; null: the tool's default",
        minimum=-1,
    ),
    column("broker_settings", "text?", "", "settings over the cluster's own: JSON, names sorted; empty: none"),
    column("broker_sizes", "text?", "", "what brokers may use: JSON, one size or a list; empty: no limits"),
    column("security", "text?", "", "plain, tls or mtls; null: the cluster's own"),
    column("gateway_bps", "number?", "bit/s", "rate that links leaving a region share; null: each has its own"),
    column("system", "text?", "", "what is compared, by its name; null: not a comparison of systems"),
    column("cluster", "text?", "", "name of the external cluster it ran on; null: the lab's own"),
)
declare(
    "producers",
    "one producer process over its whole time: the summary of kafka-producer-perf-test",
    *CONTEXT,
    column("producer", "count", "", "the producer's number in its test, from 0"),
    column("records", "count?", "records", "sent; with a warm-up, also in a separate row without it"),
    column("records_per_s", "number?", "records/s", "rate, as printed"),
    column("throughput_bps", "number?", "bit/s", "payload rate: the printed MB/sec (MiB/s) times 8 * 2^20"),
    *_latency("time from send to acknowledgement", "mean", "max", "p50", "p95", "p99", "p999"),
    column("warmup", "flag", "", "the figures include the warm-up; another row does not"),
    column("n_errors", "count", "", "lines of errors and warnings that the tool printed"),
    column("error", "text?", "", "the first of them, or why there is no summary"),
)
declare(
    "producer_windows",
    "one reporting interval of one producer process",
    *CONTEXT,
    column("producer", "count", "", "the producer's number in its test, from 0"),
    column("window", "count", "", "the interval's number, from 0"),
    column("printed_at_s", "number?", "Unix s", "when the line came; null: not recorded"),
    column("length_s", "number?", "s", "records over their rate, as printed"),
    column("records", "count", "records", "sent in the interval"),
    column("records_per_s", "number?", "records/s", "rate, as printed; null: no time passed"),
    column("throughput_bps", "number?", "bit/s", "payload rate, as printed (MiB/s); null: no time passed"),
    *_latency("time from send to acknowledgement", "mean", "max"),
    column("warmup", "flag?", "", "before the warm-up was over; null: not known"),
    column(
        "behind_s",
        "number?",
        "s",
        "time of its windows so far less the time due at the rate requested; null: not known",
        minimum=None,
    ),
)
declare(
    "consumers",
    "one consumer process over its whole time: the summary of kafka-consumer-perf-test",
    *CONTEXT,
    column("consumer", "count", "", "the consumer's number in its test, from 0"),
    column("group", "count?", "", "its consumer group, from 0 over all topics; null: not known"),
    column("started_at", "text?", "", "start, as printed, in the zone of the host's clock"),
    column("ended_at", "text?", "", "end, as printed"),
    column("duration_s", "number?", "s", "from start to end"),
    column("bytes", "number?", "bytes", "consumed: the printed MB, which are MiB, times 2^20"),
    column("records", "count?", "records", "consumed"),
    column("throughput_bps", "number?", "bit/s", "payload rate over the whole time, as printed (MiB/s)"),
    column("records_per_s", "number?", "records/s", "rate over the whole time, as printed"),
    column("rebalance_ms", "number?", "ms", "time in rebalances; null: the tool printed an epoch"),
    column("fetch_ms", "number?", "ms", "time without rebalances; null: the tool printed an epoch"),
    column("fetch_throughput_bps", "number?", "bit/s", "payload rate over fetch_ms, as printed (MiB/s)"),
    column("n_errors", "count", "", "lines of errors and warnings that the tool printed"),
    column("error", "text?", "", "the first of them, or why there is no summary"),
)
declare(
    "consumer_windows",
    "one reporting interval of one consumer process (--show-detailed-stats)",
    *CONTEXT,
    column("consumer", "count", "", "the consumer's number in its test, from 0"),
    column("group", "count?", "", "its consumer group, from 0 over all topics; null: not known"),
    column("window", "count", "", "the interval's number, from 0"),
    column("at", "text?", "", "its time, as printed"),
    column("printed_at_s", "number?", "Unix s", "when the line came; null: not recorded"),
    column("bytes", "number?", "bytes", "consumed so far (MiB, times 2^20)"),
    column("records", "count?", "records", "consumed so far"),
    column("throughput_bps", "number?", "bit/s", "payload rate in the interval, as printed (MiB/s)"),
    column("records_per_s", "number?", "records/s", "rate in the interval, as printed"),
    column("rebalance_ms", "number?", "ms", "time in rebalances; null: the tool printed an epoch"),
)
declare(
    "round_trips",
    "one run of Kafka's EndToEndLatency: records sent and read back one by one",
    *CONTEXT,
    column("records", "count?", "records", "sent and read back; null if the output does not say"),
    column("mean_latency_ms", "number?", "ms", "mean time from send to receipt, as printed"),
    *_latency("time from send to receipt, as printed", "p50", "p99", "p999"),
    column("error", "text?", "", "the tool's error message"),
)
declare(
    "batches",
    "what one second added to the log of one partition, counted in the log itself on one broker",
    *CONTEXT,
    column("broker", "count", "", "the broker's node.id"),
    column("topic", "text", "", "the topic"),
    column("partition", "count", "", "the partition"),
    column("at_s", "count", "Unix s", "the second, by the timestamps that the topic keeps"),
    column("batches", "count", "batches", "record batches appended"),
    column("records", "count", "records", "records in them"),
    column("bytes", "count", "bytes", "their size in the log, headers and compression included"),
)
declare(
    "placements",
    "one replica of one partition of a load, as it lay when the load ended",
    *CONTEXT,
    column("topic", "text", "", "the topic"),
    column("partition", "count", "", "the partition"),
    column("replica", "count", "", "position in the list of replicas, from 0: the preferred leader"),
    column("broker", "count", "", "the broker's node.id"),
    column("region", "text", "", "the region that the broker is in"),
    column("leads", "flag", "", "the broker leads the partition"),
    column("in_sync", "flag", "", "the replica is in sync"),
)
declare(
    "loads",
    "one load: when its producers were all sending, and when what they sent counts",
    *CONTEXT,
    column("started_at_s", "number", "Unix s", "when its topics began to be made"),
    column("all_sending_at_s", "number?", "Unix s", "when the last producer printed its first window"),
    column("counts_from_s", "number?", "Unix s", "when all sent and the warm-up was over; null: unknown"),
    column("counts_until_s", "number?", "Unix s", "end of the first producer, or of the time asked for"),
    column("asked_to_stop_at_s", "number?", "Unix s", "when the producers were stopped; null: never"),
    column("unfinished", "text?", "", "producers stopped for not sending all records in time; null: none"),
    column("ended_at_s", "number", "Unix s", "when its tools had ended and its topics were deleted"),
    column("missing", "text?", "", "what the load lacks, such as the summaries of stopped tools"),
)
declare(
    "benchmark_runs",
    "one result of the OpenMessaging Benchmark",
    *CONTEXT,
    column("workload", "text?", "", "the workload's name"),
    column("driver", "text?", "", "the driver's name"),
    column("record_bytes", "count?", "bytes", "messageSize; null in older results"),
    column("topics", "count?", "", "topics"),
    column("partitions", "count?", "", "partitions of each topic"),
    column("producers_per_topic", "count?", "", "producers of each topic"),
    column("consumers_per_topic", "count?", "", "consumers of each topic"),
    column("n_windows", "count", "", "windows of the result"),
    column("mean_publish_records_per_s", "number?", "records/s", "mean of the windows' publish rates"),
    column("mean_consume_records_per_s", "number?", "records/s", "mean of the windows' consume rates"),
    column("clock_limited", "flag", "", "end-to-end latencies are whole milliseconds, or below zero"),
)
declare(
    "benchmark_windows",
    "one window (ten seconds, or as the workload says) of one OpenMessaging Benchmark result; its quantiles stay apart "
    "and are never averaged",
    *CONTEXT,
    column("window", "count", "", "the window's number, from 0"),
    column("publish_records_per_s", "number?", "records/s", "publish rate"),
    column("consume_records_per_s", "number?", "records/s", "consume rate"),
    column("backlog_records", "number?", "records", "not yet consumed; below 0 by jitter", minimum=None),
    column("publish_errors_per_s", "number?", "records/s", "not sent, and in no latency; null: not stated"),
    *_latency("time from send to acknowledgement", "mean", "max"),
    column("mean_end_to_end_ms", "number?", "ms", "mean end-to-end latency", minimum=None),
    column("max_end_to_end_ms", "number?", "ms", "maximum end-to-end latency", minimum=None),
)
declare(
    "quantiles",
    "a quantile of a latency as a tool states it, over the whole of its run or one window",
    *CONTEXT,
    column(
        "what", "text", "", "the latency", allowed=("publish", "publish delay", "send call", "end to end", "round trip")
    ),
    column("window", "count?", "", "the window; null: the whole run"),
    column("quantile", "number", "fraction", "0.99 for the 99th percentile", maximum=1),
    column("latency_ms", "number", "ms", "the latency that this fraction does not exceed", minimum=None),
)
