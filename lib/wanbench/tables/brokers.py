"""Tables of what was done to brokers on purpose, and of what a detector noticed of them."""

from __future__ import annotations

from .context import CONTEXT
from .declare import column, declare

declare(
    "broker_actions",
    "one action on a broker, asked for beside a load",
    *CONTEXT,
    column("number", "count", "", "its number in the order of asking, from 1", minimum=1),
    column("node_id", "count?", "", "the broker; null: all"),
    column(
        "kind",
        "text",
        "",
        "what was done",
        allowed=("restart", "kill", "slow", "link", "demote", "restore", "skew", "rebalance"),
    ),
    column("rolling", "flag", "", "every broker had its turn"),
    column("for_s", "number?", "s", "how long it was to last; null: its kind does not last"),
    column(
        "detail",
        "text",
        "",
        "JSON: of slow, share and by which way; of link, region and changes; of demote, restore, skew and rebalance, "
        "partitions ordered, led by the first, missing, and unmovable for want of a second replica",
    ),
    column("asked_at_s", "number", "Unix s", "its time by the schedule"),
    column("began_at_s", "number?", "Unix s", "the command was given; null: never"),
    column(
        "in_force_at_s",
        "number?",
        "Unix s",
        "the broker had ended, or was slow, or its links were changed; null: of another kind, or never",
    ),
    column(
        "done_at_s",
        "number?",
        "Unix s",
        "the broker answered again, was at full speed again, its links as before, or leaders moved; null: never",
    ),
    column(
        "healthy_at_s",
        "number?",
        "Unix s",
        "after that all brokers were there and no partition of any topic under-replicated; null: not seen",
    ),
    column("leaders_moved", "count?", "partitions", "led by another broker afterwards than before"),
    column("error", "text?", "", "why it was not done, or not healthy in time; null: nothing failed"),
)
declare(
    "detection_runs",
    "one probe of every broker with a detector that read it",
    *CONTEXT,
    column("brokers", "text", "", "node_ids that were probed, with ',' between"),
    column("interval_s", "number", "s", "between two records to a broker"),
    column("record_bytes", "count", "bytes", "payload of a record"),
    column("method", "text", "", "chart of the detector", allowed=("cusum", "ewma")),
    column("learn_s", "number", "s", "baseline of each broker"),
    column("window_s", "number", "s", "latencies of a broker in it become one value"),
    column("shift", "number", "", "smallest factor of latency that is worth an alarm"),
    column("false_alarms_per_h", "number", "1/h", "that the detector was to allow, of each broker"),
    column("weight", "number", "", "of the latest value in an EWMA"),
    column("limit_ms", "number", "ms", "a latency of more counts as this"),
    column("least_windows", "count", "", "an alarm takes at least so many windows", minimum=1),
    column("demote_on_alarm", "flag", "", "brokers that it named were to be demoted"),
    column("began_at_s", "number?", "Unix s", "latencies known since then were read; null: none"),
    column("ended_at_s", "number", "Unix s", "the probe had ended"),
    column("client", "text?", "", "version of librdkafka"),
    column("n_due", "count", "records", "that came due"),
    column("n_late", "count", "records", "not answered within the limit"),
    column("n_failed", "count", "records", "never answered, or refused"),
    column("error", "text?", "", "what failed; null: nothing"),
)
declare(
    "detections",
    "one alarm of a detector that read a probe as it ran",
    *CONTEXT,
    column("node_id", "count", "", "the broker that it named"),
    column("at_s", "number", "Unix s", "the latency that completed the alarm was known"),
    column("named_at_s", "number", "Unix s", "the detector had read it"),
    column("since_s", "number", "Unix s", "since when the chart was above 0: about when the rise began"),
    column("ratio", "number", "", "median latency since then over that of the baseline"),
    column("statistic", "number", "spreads", "of the chart"),
    column("limit", "number", "spreads", "of the chart"),
    column("n_alarmed", "count", "brokers", "in alarm then, this one included"),
    column("baseline_ms", "number", "ms", "median of the baseline"),
    column("baseline_spread", "number", "", "robust standard deviation of its logarithm"),
    column("baseline_phi", "number", "", "its lag-1 autocorrelation"),
    column("demoted_at_s", "number?", "Unix s", "others led what the broker had led; null: not demoted"),
    column("leaders_moved", "count?", "partitions", "that others then led"),
    column("error", "text?", "", "why the broker could not be demoted; null: nothing failed"),
)
declare(
    "detection_latencies",
    "one record of a detection's probe, in the order in which the detector read them",
    *CONTEXT,
    column("node_id", "count", "", "the broker that leads its partition"),
    column("due_at_s", "number", "Unix s", "when it was due"),
    column("known_at_s", "number", "Unix s", "when it was answered, refused, or beyond the limit"),
    column("latency_ms", "number?", "ms", "from when it was due to its acknowledgement; null: never"),
    column("late", "flag", "", "not answered within the limit: the detector read the limit in its place"),
    column("error", "text?", "", "librdkafka's name of the error; null: answered"),
)
