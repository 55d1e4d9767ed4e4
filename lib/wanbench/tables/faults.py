"""Tables of fault episodes: the fault, every record that came due, every receipt, the log, and what watchers saw."""

from __future__ import annotations

from .context import CONTEXT
from .declare import column, declare

_ROLE = column("role", "text", "", "producer or consumer", allowed=("producer", "consumer"))
_CLIENT = column("client", "count", "", "its number in its role, from 0 over all regions")
_PRODUCER = column("producer", "count?", "", "the producer's number; null: the record is damaged")
_SEQUENCE = column("sequence", "count?", "", "the record's number of its producer; null: it is damaged")
_PARTITION = column("partition", "count", "", "the partition")
_OFFSET = column("offset", "count", "", "its offset in the partition")
_WATCHER = column("region", "text", "", "the region that it was watched from")

declare(
    "faults",
    "one episode: a fault begun and healed while a cluster was used",
    *CONTEXT,
    column("setting", "text?", "", "the setting's name in the plan; null outside a plan of trials"),
    column("block", "count?", "", "block of the plan: episodes of a block are close in time"),
    column("fault", "text", "", "cut, cut-out, cut-in, slow, kill, freeze or none"),
    column("at", "text", "", "where it was asked for: regions, controller or consumers; empty: nowhere"),
    column("regions", "text", "", "the regions that were hit, with ',' between"),
    column("acks", "text", "", "acknowledgements that producers wait for: 0, 1 or all", allowed=("0", "1", "all")),
    column("min_insync", "count?", "replicas", "min.insync.replicas of the topic; null: the brokers' own"),
    column("replication", "count", "replicas", "of each partition", minimum=1),
    column("partitions", "count", "", "of the topic", minimum=1),
    column("unclean", "flag?", "", "unclean.leader.election.enable of the topic; null: the brokers' own"),
    column("group_protocol", "text", "", "of the consumers: classic or consumer (KIP-848)"),
    column("session_timeout_ms", "number?", "ms", "session.timeout.ms of the consumers; null: librdkafka's own"),
    column("records_per_s", "number", "records/s", "scheduled rate of each producer"),
    column("record_bytes", "count", "bytes", "of a record's value"),
    column("broker_settings", "text", "", "settings that brokers were restarted with, JSON; empty: none"),
    column("client_settings", "text", "", "settings of librdkafka beside its defaults, JSON; empty: none"),
    column("topic_settings", "text", "", "settings of the topic beside its defaults, JSON; empty: none"),
    column("damage", "text?", "", "what was done on purpose to one receipt; null: nothing"),
    column("damaged_producer", "count?", "", "the producer of that record; null: nothing was done"),
    column("damaged_sequence", "count?", "", "that record's number of its producer; null: nothing was done"),
    column("started_at_s", "number?", "Unix s", "all clients were ready; null: they never were"),
    column("fault_at_s", "number?", "Unix s", "the command to begin the fault was given"),
    column("fault_done_at_s", "number?", "Unix s", "the lab had answered that the fault was there"),
    column("heal_at_s", "number?", "Unix s", "the command to heal was given"),
    column("heal_done_at_s", "number?", "Unix s", "the lab had answered that it was healed"),
    column("ended_at_s", "number?", "Unix s", "the traffic was told to stop"),
    column("healthy_at_s", "number?", "Unix s", "all replicas in sync, all members with partitions; null: not seen"),
    column("leaders_back_at_s", "number?", "Unix s", "preferred leaders led untold, or still led; null: not seen"),
    column("error", "text?", "", "why the episode failed; null: it did not"),
    column(
        "incomplete", "text?", "", "what failed since the fault began, so that not all is accounted for; null: nothing"
    ),
)
declare(
    "fault_clients",
    "one producer or consumer of an episode",
    *CONTEXT,
    _ROLE,
    _CLIENT,
    column("region", "text", "", "the region that it ran in"),
    column("host", "text", "", "the host that it ran on"),
    column("started_at_s", "number", "Unix s", "start of its program"),
    column("ended_at_s", "number?", "Unix s", "end of its program"),
    column("killed", "flag", "", "it was ended by a signal, and may have had more to say"),
)
declare(
    "fault_records",
    "one record that came due, sent or not",
    *CONTEXT,
    column("producer", "count", "", "the producer's number"),
    column("sequence", "count", "", "the record's number of its producer, from 0"),
    column("partition", "count?", "", "the partition that it was meant for"),
    column("intended_at_s", "number", "Unix s", "when the schedule had it"),
    column("sent_at_s", "number?", "Unix s", "when it was given to librdkafka; null: never"),
    column("acknowledged_at_s", "number?", "Unix s", "when the producer was told that it is in the log"),
    column("offset", "count?", "", "its offset, as acknowledged"),
    column("error", "text?", "", "why it failed: librdkafka's name, or 'no answer'; null: it did not"),
)
declare(
    "fault_receipts",
    "one record received by a consumer, in the order of its program",
    *CONTEXT,
    column("consumer", "count", "", "the consumer's number"),
    _PRODUCER,
    _SEQUENCE,
    _PARTITION,
    _OFFSET,
    column("received_at_s", "number", "Unix s", "when the consumer got it"),
    column("damaged", "flag", "", "its checksum is wrong"),
)
declare(
    "fault_log",
    "one record in the log, read back after the episode",
    *CONTEXT,
    _PARTITION,
    _OFFSET,
    _PRODUCER,
    _SEQUENCE,
    column("damaged", "flag", "", "its checksum is wrong"),
)
declare(
    "fault_assignments",
    "one change of what a consumer was to read, as it learnt it",
    *CONTEXT,
    column("consumer", "count", "", "the consumer's number"),
    column("at_s", "number", "Unix s", "when"),
    column("kind", "text", "", "what happened", allowed=("assigned", "revoked", "lost")),
    column("partitions", "text", "", "the partitions that were added or taken away, with ',' between"),
)
declare(
    "fault_errors",
    "one error that librdkafka reported to a client, or a line that it logged",
    *CONTEXT,
    _ROLE,
    _CLIENT,
    column("at_s", "number", "Unix s", "when"),
    column("kind", "text", "", "librdkafka's name: _TRANSPORT and the like of an error, REQTMOUT of a line"),
    column("message", "text", "", "its text"),
)
declare(
    "cluster_samples",
    "one partition as a watcher saw it at one time, or a look that nobody answered",
    *CONTEXT,
    _WATCHER,
    column("at_s", "number", "Unix s", "when it asked"),
    column("took_s", "number", "s", "until it had the answer"),
    column("node_id", "count?", "", "the broker that answered; null: none"),
    column("topic", "text?", "", "the topic; null: that of the fault episode, or nobody answered"),
    column("partition", "count?", "", "the partition; null: nobody answered, or the topic was not known"),
    column("leader", "count?", "", "node_id of its leader; null: none"),
    column("isr", "text?", "", "node_ids of the replicas in sync, with ',' between"),
    column("n_isr", "count?", "replicas", "how many those are"),
    column("error", "text?", "", "why nobody answered; null: somebody did"),
)
declare(
    "group_samples",
    "one member of the consumer group as a watcher saw it at one time, or a look that failed or saw no member",
    *CONTEXT,
    _WATCHER,
    column("at_s", "number", "Unix s", "when it asked"),
    column("group", "text", "", "the group"),
    column("state", "text?", "", "its state, such as Stable or PreparingRebalance"),
    column("member", "count?", "", "the consumer's number; null: no member, or nobody answered"),
    column("client_region", "text?", "", "the region of that consumer"),
    column("n_partitions", "count?", "", "partitions that it had, by the coordinator's account"),
    column("error", "text?", "", "why nobody answered; null: somebody did"),
)
declare(
    "controller_events",
    "one event in a node's log during an episode that explains who led and who was in sync",
    *CONTEXT,
    column("at_s", "number", "Unix s", "its time in the log"),
    column("node_id", "count", "", "the node that wrote it; one that is cut off may note what never came into force"),
    column("kind", "text", "", "what happened", allowed=("fenced", "unfenced", "elected", "isr-shrunk", "isr-grown")),
    column("broker", "count?", "", "the broker that it is about; null: about none, or several"),
    column("partition", "count?", "", "the partition of the episode's topic that it is about"),
    column("text", "text", "", "the message, cut to 300 characters"),
)
