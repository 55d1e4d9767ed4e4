"""Tables of the network: regions, links, tests, and what ping and iperf3 said."""

from __future__ import annotations

from dataclasses import replace

from .context import CONTEXT, DIRECTION, FROM, RUN, TO
from .declare import column, declare

declare(
    "regions",
    "a region of a cloud, public or as a source of data calls it",
    column("name", "text", "", "the region's name here: cloud:code"),
    column("cloud", "text", "", "aws, azure, gcp or ibm; of an import, any"),
    column("code", "text", "", "the region's name at its cloud"),
    column("city", "text?", "", "the city or area that the cloud states; null if the source does not say"),
    column("country", "text?", "", "country; null if the source does not say"),
    column("latitude_deg", "number", "degrees", "latitude, WGS-84", least=-90, most=90),
    column("longitude_deg", "number", "degrees", "longitude, WGS-84", least=-180, most=180),
    column("precision_km", "number?", "km", "how far off the coordinates may be; null if nobody knows"),
    column("source", "text", "", "where the coordinates come from"),
)
declare(
    "links",
    "one direction of an emulated link, as it was requested",
    RUN,
    column("from_region", "text", "", "region whose packets take this link"),
    column("to_region", "text", "", "region they arrive in"),
    column("delay_ms", "number", "ms", "one-way delay"),
    column("jitter_ms", "number", "ms", "spread of the one-way delay"),
    column("loss", "number", "fraction", "packets lost at random", most=1),
    column("rate_bps", "number?", "bit/s", "rate limit; null: none"),
    column("queue_bytes", "count?", "bytes", "queue before the rate limit; null: the lab's own choice"),
)
declare(
    "cuts",
    "one cut of an emulated link, both ways, under echoes",
    *CONTEXT,
    column("cut_at_s", "number", "Unix s", "when the command to cut was given"),
    column("cut_answered_at_s", "number", "Unix s", "when the lab had answered that it was done"),
    column("healed_at_s", "number", "Unix s", "when the command to heal was given"),
    column("healed_answered_at_s", "number", "Unix s", "when the lab had answered that it was done"),
)
declare(
    "tests",
    "one attempt at a test: a pair measured once, in a lab with all experiments of the plan",
    RUN,
    column("test_id", "text", "", "the test: ordinal in the plan, from, to; of an import, file and line"),
    column("attempt", "count", "", "1 for the first try", least=1),
    column("round", "count?", "", "the round of the plan; null where there was none"),
    column("setting", "text?", "", "what sets it apart from others of its pair: machines, network tier"),
    FROM,
    TO,
    column("outcome", "text", "", "how it ended", allowed=("done", "failed", "interrupted")),
    column("failed_experiment", "text?", "", "the experiment that failed"),
    column("reason", "text?", "", "why it failed or stopped"),
    column("started_at_utc", "time?", "UTC", "start; null if the source does not say"),
    column("ended_at_utc", "time?", "UTC", "end; null if it was interrupted, or nobody knows"),
)
declare(
    "echoes",
    "one ICMP echo, or one more reply to it",
    *CONTEXT,
    column("ping", "count?", "", "the ping's number in its file, from 0; null: not known"),
    column("target", "text?", "", "the host that was pinged, as ping's header calls it; null: not known"),
    column(
        "sequence", "count", "", "as ping prints it, carried on past 65,535; counted where it prints none"
    ),
    column("received_at_s", "number?", "s", "Unix time of ping's line on the echo, from ping -D"),
    column(
        "rtt_ms",
        "number?",
        "ms",
        "round-trip time; null if lost, or if ping printed no exact one (see error)",
    ),
    column("lost", "flag", "", "no reply is known"),
    column("duplicate", "flag", "", "one more reply to an echo that was answered before"),
    column("ttl", "count?", "hops", "time to live of the reply", most=255),
    column("reply_bytes", "count?", "bytes", "ICMP bytes of the reply (Windows: payload bytes)"),
    column("responder", "text?", "", "who replied, or reported the error"),
    column("error", "text?", "", "what ping said beside or instead of a reply, in its words"),
)
declare(
    "pings",
    "one ping command whose echoes are not known one by one: a row of somebody else's table; or one test of "
    "requests and responses",
    *CONTEXT,
    column("n_sent", "count?", "", "echoes sent; null if the source does not say"),
    column("n_lost", "count?", "", "echoes lost; null if the source does not say"),
    column("min_rtt_ms", "number?", "ms", "least RTT"),
    column("mean_rtt_ms", "number?", "ms", "mean RTT, ping's avg"),
    column("median_rtt_ms", "number?", "ms", "median RTT"),
    column("max_rtt_ms", "number?", "ms", "greatest RTT"),
    column("sd_rtt_ms", "number?", "ms", "spread of the RTTs: their standard deviation, ping's mdev"),
    column("p90_rtt_ms", "number?", "ms", "90th percentile of the RTTs"),
    column("p95_rtt_ms", "number?", "ms", "95th percentile of the RTTs"),
    column("p99_rtt_ms", "number?", "ms", "99th percentile of the RTTs"),
    column("started_at_utc", "time?", "UTC", "start, or the only time that the source gives"),
)
declare(
    "transfers",
    "one direction of one iperf3 test, or of another tool's, all streams together",
    *CONTEXT,
    replace(DIRECTION, nullable=True),
    column("protocol", "text?", "", "TCP, UDP or SCTP; null if it never started"),
    column("streams", "count?", "", "parallel streams in this direction"),
    column("duration_s", "number?", "s", "length at the receiver, else at the sender; omitted time apart"),
    column("bytes", "count?", "bytes", "received, as the receiver counted; of an import, the count it gives"),
    column(
        "throughput_bps",
        "number?",
        "bit/s",
        "payload rate at the receiver; null if it never reported; of an import, the rate it gives",
    ),
    column("sent_throughput_bps", "number?", "bit/s", "payload rate at the sender"),
    column("retransmits", "count?", "segments", "TCP segments sent again"),
    column("min_rtt_ms", "number?", "ms", "least smoothed RTT at the intervals; sending client only"),
    column("mean_rtt_ms", "number?", "ms", "mean smoothed RTT at the intervals; sending client only"),
    column("max_rtt_ms", "number?", "ms", "greatest smoothed RTT at the intervals; sending client only"),
    column(
        "max_cwnd_bytes", "count?", "bytes", "greatest congestion window of a stream; sending client only"
    ),
    column("packets", "count?", "packets", "UDP datagrams sent"),
    column("lost_packets", "count?", "packets", "UDP datagrams that the receiver missed"),
    column("jitter_ms", "number?", "ms", "UDP jitter at the receiver (RFC 1889)"),
    column("congestion_control", "text?", "", "the sender's TCP congestion control"),
    column("mss_bytes", "count?", "bytes", "maximum segment size when the test began"),
    column("window_bytes", "count?", "bytes", "socket buffer asked for (-w); null: the system's choice"),
    column("block_bytes", "count?", "bytes", "length of one write, or of one UDP datagram"),
    column("target_bitrate_bps", "number?", "bit/s", "rate asked for (-b); null: none"),
    column("tool_version", "text?", "", "version of iperf3"),
    column("cpu_local_percent", "number?", "%", "CPU time at the client over the test, of one core"),
    column("cpu_remote_percent", "number?", "%", "CPU time at the server over the test, of one core"),
    column("started_at_utc", "time?", "UTC", "start, by the client's clock"),
    column("error", "text?", "", "what iperf3 said went wrong, in its words"),
)
declare(
    "intervals",
    "one stream of one iperf3 test over one reporting interval, as the client saw it",
    *CONTEXT,
    DIRECTION,
    column("stream", "count", "", "the stream's number in its file, from 0"),
    column("start_s", "number", "s", "start of the interval; counts anew after the omitted time"),
    column("end_s", "number", "s", "end of the interval"),
    column("bytes", "count", "bytes", "sent (forward) or received (reverse)"),
    column("throughput_bps", "number?", "bit/s", "bytes over the interval, sent or received"),
    column("retransmits", "count?", "segments", "TCP segments sent again"),
    column("cwnd_bytes", "count?", "bytes", "congestion window at the end"),
    column("rtt_ms", "number?", "ms", "smoothed RTT at the end"),
    column("rttvar_ms", "number?", "ms", "mean deviation of the RTT at the end"),
    column("packets", "count?", "packets", "UDP datagrams"),
    column("lost_packets", "count?", "packets", "UDP datagrams missed; only a receiver knows"),
    column("jitter_ms", "number?", "ms", "UDP jitter; only a receiver knows"),
    column("omitted", "flag", "", "start-up (-O) that the totals leave out"),
)
