"""Declare the members of iperf3's JSON that are read, with the values that they may have."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .json_values import LARGEST

Count = Annotated[int, Meta(ge=0, le=LARGEST)] | None
CountOrUnknown = Annotated[int, Meta(ge=-1, le=LARGEST)] | None
"""-1 stands for an unknown count."""
Signed = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | None
"""A negative count is unknown."""
Number = Annotated[float, Meta(ge=0, le=LARGEST)] | None


class Figures(Struct, frozen=True, gc=False):
    """Bytes, rate, RTT and losses of one stream or of all streams, in one interval or in the whole test."""

    socket: Count = None
    start: Number = None
    end: Number = None
    seconds: Number = None
    bytes: Count = None
    bits_per_second: Number = None
    retransmits: CountOrUnknown = None
    snd_cwnd: Count = None
    rtt: Number = None
    rttvar: Number = None
    packets: Count = None
    lost_packets: Signed = None
    jitter_ms: Number = None
    omitted: bool | None = None
    sender: bool | None = None
    max_snd_cwnd: Count = None
    min_rtt: Number = None
    mean_rtt: Number = None
    max_rtt: Number = None


NOTHING = Figures()


class Interval(Struct, frozen=True):
    streams: list[Figures] = []


class Ends(Struct, frozen=True):
    """The figures of both ends of a stream."""

    sender: Figures | None = None
    udp: Figures | None = None


class Cpu(Struct, frozen=True):
    host_total: Number = None
    remote_total: Number = None


class End(Struct, frozen=True):
    """What iperf3 prints at the end of a test."""

    streams: list[Ends] = []
    sum: Figures = NOTHING
    sum_sent: Figures = NOTHING
    sum_received: Figures = NOTHING
    sum_bidir_reverse: Figures = NOTHING
    sum_sent_bidir_reverse: Figures = NOTHING
    sum_received_bidir_reverse: Figures = NOTHING
    cpu_utilization_percent: Cpu = Cpu()
    sender_tcp_congestion: str | None = None


class Timestamp(Struct, frozen=True):
    timesecs: Annotated[float, Meta(ge=0, le=2**33)] | None = None
    timemillisecs: Annotated[float, Meta(ge=0, le=2**43)] | None = None


class TestStart(Struct, frozen=True):
    """The settings of a test."""

    protocol: Literal["TCP", "UDP", "SCTP"] | None = None
    num_streams: Count = None
    blksize: Count = None
    reverse: Count = None
    bidir: Count = None
    target_bitrate: Number = None


class Connection(Struct, frozen=True):
    socket: Count = None
    local_host: str | None = None


class Start(Struct, frozen=True):
    """What iperf3 prints at the start of a test."""

    version: str | None = None
    timestamp: Timestamp = Timestamp()
    connected: list[Connection] = []
    test_start: TestStart = TestStart()
    tcp_mss: Count = None
    tcp_mss_default: Count = None
    sock_bufsize: Count = None
    target_bitrate: Number = None


class Document(Struct, frozen=True):
    """The whole JSON document of one test."""

    start: Start = Start()
    intervals: list[Interval] = []
    end: End = End()
    error: str | None = None
