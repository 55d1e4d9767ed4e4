"""Tables of open-loop loads: what each did, each second of its schedule, and the latencies of each second."""

from __future__ import annotations

from .context import CONTEXT
from .declare import column, declare

_STEP = column(
    "step", "count?", "", "number of the load in a search, from 1; null: it stands alone", minimum=1
)
_SECOND = column("second", "count", "", "second of the schedule, from 0")
_WARM_UP = column("warm_up", "flag", "", "it begins before the warm-up is over")

declare(
    "open_loop_loads",
    "one attempt of an open-loop load",
    *CONTEXT,
    _STEP,
    column("rate_records_per_s", "number", "records/s", "rate asked of all producers together"),
    column("sent_records_per_s", "number?", "records/s", "handed to the client while what counts was due"),
    column("acknowledged_records_per_s", "number?", "records/s", "acknowledged in that time"),
    column("received_records_per_s", "number?", "records/s", "received in that time, mean over the groups"),
    column("record_bytes", "count", "bytes", "payload of a record"),
    column("payload", "text", "", "kind of the records: json, log, random"),
    column("topics", "count", "", "topics"),
    column("partitions", "count", "", "partitions of each topic"),
    column("replication", "count", "", "replicas of each partition"),
    column("producers", "count", "", "producers of each topic"),
    column("groups", "count", "", "consumer groups of each topic"),
    column("consumers", "count", "", "members of each group"),
    column("acks", "text", "", "acknowledgements waited for: 0, 1 or all", allowed=("0", "1", "all")),
    column("linger_ms", "number", "ms", "linger.ms of the producers"),
    column("batch_bytes", "count", "bytes", "batch.size of the producers"),
    column("compression", "text", "", "compression.type of the producers"),
    column("idempotence", "flag", "", "the producers are idempotent"),
    column("client", "text?", "", "version of librdkafka; null: no program started"),
    column("start_s", "number?", "Unix s", "when the first record was due; null: the schedule never started"),
    column("warmup_s", "number", "s", "start of the schedule that does not count"),
    column("duration_s", "number", "s", "the rest of the schedule"),
    column("n_intended", "count", "records", "of the schedule, the warm-up included"),
    column("n_sent", "count", "records", "handed to the client"),
    column("n_acknowledged", "count", "records", "acknowledged by the cluster"),
    column("n_failed", "count", "records", "sent, and refused or not answered until the load ended"),
    column("n_received_per_group_min", "count", "records", "received at least once by the group with fewest"),
    column("n_duplicates", "count", "records", "received once more, over all groups"),
    column(
        "late_p99_ms",
        "number?",
        "ms",
        "99th percentile of what the generator itself was late, warm-up left out",
    ),
    column("late_max_ms", "number?", "ms", "maximum of that"),
    column(
        "blocked_s", "number", "s", "time in which records waited for room in a queue, over all processes"
    ),
    column("backlog_records", "count?", "records", "due and not yet acknowledged when the schedule ended"),
    column("fell_behind", "flag?", "", "the generator, not the system, was late; null: it never started"),
    column("clock_offset_ms", "number?", "ms", "consumer's less producer's clock, taken off", minimum=None),
    column("clock_error_ms", "number?", "ms", "maximum error of that, of any pair of hosts"),
    column("clock_method", "text?", "", "how the offset was found"),
    column("client_errors", "text?", "", "errors that the clients reported, with their numbers; null: none"),
    column("error", "text?", "", "why the load failed; null: it did not"),
)
declare(
    "open_loop_seconds",
    "one second of the schedule of an open-loop load",
    *CONTEXT,
    _STEP,
    _SECOND,
    column("at_s", "number", "Unix s", "its start, by the clock of the first producer's host"),
    _WARM_UP,
    column("n_intended", "count", "records", "due in it"),
    column("n_sent", "count", "records", "handed to the client in it, whenever they were due"),
    column("n_acknowledged", "count", "records", "acknowledged in it"),
    column("n_received", "number", "records", "received for the first time in it, mean over the groups"),
    column(
        "n_resent",
        "count?",
        "records",
        "sent again in it, as a request failed or timed out; null: not counted",
    ),
    column(
        "late_max_ms", "number", "ms", "maximum of what the generator itself was late with what was due in it"
    ),
    column("backlog_records", "count?", "records", "due and not yet acknowledged at its end"),
    column(
        "blocked_ms",
        "number",
        "ms",
        "time in it in which records waited for room in a queue, over all processes",
    ),
)
declare(
    "open_loop_histograms",
    "latencies of the records that were due in one second of an open-loop load, as an HdrHistogram",
    *CONTEXT,
    _STEP,
    column(
        "what",
        "text",
        "",
        "from when the record was due until the producer had its acknowledgement, or until the group had it",
        allowed=("publish", "end to end"),
    ),
    column("group", "count?", "", "the consumer group, from 0; null: publish"),
    column("window", "count", "", "the second's number, from 0"),
    column("start_s", "number", "Unix s", "start of the second, by the clock of the first producer's host"),
    column("length_s", "number", "s", "its length"),
    _WARM_UP,
    column("n", "count", "records", "latencies in the histogram"),
    column("n_lost", "count", "records", "due in it and never acknowledged, or never received by the group"),
    column("n_negative", "count", "records", "below zero by the clocks: counted as 0 in the histogram"),
    column("fell_behind", "flag", "", "that of the load: see open_loop_loads"),
    column("clock_error_ms", "number", "ms", "maximum error of the clocks"),
    column("unit", "text", "", "unit of the recorded values", allowed=("us",)),
    column("histogram", "text", "", "HdrHistogram, V2 encoding, compressed, base64"),
)
declare(
    "rate_search_steps",
    "one step of a search for the highest rate that keeps a quantile of latency under an objective",
    *CONTEXT,
    column("step", "count", "", "the step's number, from 1: that of its load in open_loop_loads", minimum=1),
    column("rate_records_per_s", "number", "records/s", "rate asked of all producers together"),
    column("what", "text", "", "the latency, as in open_loop_histograms", allowed=("publish", "end to end")),
    column("quantile", "number", "fraction", "0.99 for the 99th percentile", maximum=1),
    column("objective_ms", "number", "ms", "the quantile must not exceed this"),
    column(
        "value_ms", "number?", "ms", "the quantile after the warm-up; null: the record of this rank was lost"
    ),
    column("n", "count", "records", "latencies that count, lost ones included"),
    column("n_lost", "count", "records", "of these, never acknowledged, or never received by a group"),
    column("backlog_grew", "flag", "", "acknowledgements came at less than 99 % of the rate"),
    column("fell_behind", "flag", "", "the generator, not the system, was late: the step says nothing"),
    column(
        "met", "flag?", "", "within the objective, none lost, no growing backlog; null: the step says nothing"
    ),
    column(
        "met_until_records_per_s", "number?", "records/s", "highest rate so far that met it; null: none did"
    ),
    column(
        "failed_from_records_per_s", "number?", "records/s", "lowest rate so far that did not; null: all did"
    ),
    column("ended", "text", "", "why the search ended after its last step"),
)
