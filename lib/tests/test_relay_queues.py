"""Queues that are served when a packet leaves: CoDel, marks, limits in packets, small MTUs and schedules."""

import heapq
import itertools
import random
import struct
from dataclasses import asdict

import numpy as np
import pytest
from wire_packets import HEADER_BYTES, MSS, checksum, link, packet, read

from wanbench.measure.links import LinkSettings, Step
from wanbench.measure.links.link import Link
from wanbench.measure.links.mtu import too_big
from wanbench.measure.links.queues import OFFLOAD_BYTES, marked


def run(link, arrivals, changes=(), until_s=1e4):
    """Give a link packets at their times on a simulated clock, and call it when it asks; return what arrives."""
    heap = [(at, number, "packet", raw) for number, (at, raw) in enumerate(arrivals)]
    heap += [(at, -number, "change", settings) for number, (at, settings) in enumerate(changes, 1)]
    heapq.heapify(heap)
    numbers, arrived = itertools.count(len(heap)), []
    while heap and heap[0][0] < until_s:
        at, _, what, content = heapq.heappop(heap)
        if what == "packet":
            coming = link.accept(content, at)
        elif what == "change":
            coming = link.set(**content, now=at)
        else:
            coming = link.wake(at, content)
        for due, packets, size, raw in coming:
            if packets:
                arrived.append((due, packets, size, raw))
            else:
                heapq.heappush(heap, (due, next(numbers), "wake", raw))
    return arrived


FULL = MSS + HEADER_BYTES
RATE_BPS = FULL * 8 * 1000  # a full packet each millisecond


class RfcCoDel:
    """Section 5 of RFC 8289, written out for packets (time of arrival) that leave one each `takes_s`."""

    def __init__(self, arrivals, takes_s, target_s=0.005, interval_s=0.1):
        self.arrivals, self.takes_s, self.target_s, self.interval_s = arrivals, takes_s, target_s, interval_s
        self.first_above = self.drop_next = 0.0
        self.count = self.lastcount = self.taken = 0
        self.dropping, self.dropped = False, []

    def law(self, t):
        return t + self.interval_s / np.sqrt(self.count)

    def dodequeue(self, now):
        number, ok = self.taken, False
        self.taken += 1
        behind = np.searchsorted(self.arrivals, now, side="right") - self.taken
        if now - self.arrivals[number] < self.target_s or behind <= 1:
            self.first_above = 0.0
        elif self.first_above == 0.0:
            self.first_above = now + self.interval_s
        elif now >= self.first_above:
            ok = True
        return number, ok

    def dequeue(self, now):
        number, ok = self.dodequeue(now)
        if self.dropping:
            if not ok:
                self.dropping = False
            while now >= self.drop_next and self.dropping:
                self.dropped.append(number)
                self.count += 1
                number, ok = self.dodequeue(now)
                if ok:
                    self.drop_next = self.law(self.drop_next)
                else:
                    self.dropping = False
        elif ok:
            self.dropped.append(number)
            number, ok = self.dodequeue(now)
            self.dropping = True
            delta, self.count = self.count - self.lastcount, 1
            if delta > 1 and now - self.drop_next < 16 * self.interval_s:
                self.count = delta
            self.drop_next, self.lastcount = self.law(now), self.count
        return number

    def run(self):
        now = 0.0
        while self.taken < len(self.arrivals) - 3:
            now = max(now, self.arrivals[self.taken])
            self.dequeue(now)
            now += self.takes_s
        return self.dropped


@pytest.mark.parametrize("load", [1.02, 1.3])
def test_codel_drops_the_packets_that_the_rfc_drops(load):
    draw, arrivals = random.Random(4), [0.0]
    for number in range(6000):  # two bursts of overload with a pause between them, so that dropping stops and resumes
        arrivals.append(arrivals[-1] + draw.expovariate(1000 * (load if number % 3000 < 2500 else 0.3)))
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5)
    packets = [(at, packet(bytes(MSS), sequence=number)) for number, at in enumerate(arrivals)]
    arrived = {read(raw)["sequence"] for _, _, _, raw in run(queued, packets)}
    dropped = [number for number in range(len(arrivals)) if number not in arrived]
    expected = RfcCoDel(arrivals, 0.001).run()
    assert len(expected) > 20
    assert dropped[: len(expected)] == expected
    assert queued.packets_queue_dropped == len(dropped)


def test_codel_lets_a_short_burst_pass():
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5)
    arrived = run(queued, [(0.0, packet(bytes(MSS)))] * 90)  # gone after 90 ms, less than the interval
    assert len(arrived) == 90 and queued.packets_queue_dropped == 0


def with_ecn(raw, ecn):
    """The packet from a sender with these ECN bits, with a correct checksum."""
    changed = bytearray(raw)
    changed[11] |= ecn
    changed[20:22] = b"\0\0"
    changed[20:22] = checksum(bytes(changed[10:30])).to_bytes(2, "big")
    return bytes(changed)


@pytest.mark.parametrize("ecn", [0, 1, 2])
def test_with_ecn_codel_marks_the_packets_of_senders_that_understand_marks(ecn):
    queued = link(10, rate_bps=RATE_BPS, queue_bytes=10**8, codel_target_ms=5, ecn=True)
    load = [(at / 100, with_ecn(packet(bytes(MSS * 20)), ecn)) for at in range(100)]
    arrived = run(queued, load)
    marks = [packets for _, packets, _, raw in arrived if raw[11] & 3 == 3]
    assert all(read(raw)["ip_checksum_left"] == 0 for *_, raw in arrived)
    assert (queued.packets_marked > 20) == bool(ecn) and (queued.packets_queue_dropped > 20) == (not ecn)
    assert marks == [1] * queued.packets_marked, "a mark is on one packet of the wire, not on a super-packet"


def test_a_mark_on_ipv6_is_in_the_traffic_class():
    raw = bytearray(OFFLOAD_BYTES + 40)
    raw[10:12] = b"\x60\x20"  # version 6, ECT(0)
    assert marked(bytes(raw))[10:12] == b"\x60\x30"
    raw[11] = 0x0F  # a flow label is no mark
    assert marked(bytes(raw)) is None


def test_a_queue_by_packets_drops_small_packets_too():
    short = link(10, rate_bps=RATE_BPS, queue_packets=5)
    arrived = run(short, [(0.0, packet(b""))] * 20)
    assert (len(arrived), short.packets_queue_dropped) == (6, 14), "one in transmission, and five that wait"
    apart = run(link(10, rate_bps=RATE_BPS, queue_packets=5), [(at / 1000, packet(bytes(MSS))) for at in range(50)])
    assert len(apart) == 50


def narrow(answers, **settings):
    made = Link(target=0, answer=answers.append)
    made.set(**asdict(LinkSettings(10, mtu_bytes=1400, **settings)), now=0.0)
    return made


@pytest.mark.parametrize("segments", [1, 10])
def test_a_packet_that_is_too_big_is_answered_with_the_mtu(segments):
    answers = []
    one, raw = narrow(answers), packet(bytes(MSS * segments), sequence=77)
    assert not one.accept(raw, now=0.0)
    assert (one.packets_too_big, one.in_flight()[0]) == (segments, 0)
    [answer] = answers
    ip = answer[OFFLOAD_BYTES:]
    assert answer[:OFFLOAD_BYTES] == bytes(OFFLOAD_BYTES)
    assert int.from_bytes(ip[2:4], "big") == len(ip) and ip[9] == 1
    assert checksum(ip[:20]) == checksum(ip[20:]) == 0
    assert ip[12:20] == bytes([10, 1, 255, 255, 10, 1, 0, 1]), "to the packet's sender, from no host"
    assert (ip[20], ip[21], int.from_bytes(ip[26:28], "big")) == (3, 4, 1400)
    assert ip[28:] == raw[OFFLOAD_BYTES : OFFLOAD_BYTES + 28], "it quotes the headers"


def test_a_packet_that_fits_passes_and_a_black_hole_says_nothing():
    answers = []
    one = narrow(answers)
    assert one.accept(packet(bytes(1400 - HEADER_BYTES)), now=0.0) and not one.accept(packet(bytes(1349)), now=0.0)
    hole = narrow(answers, mtu_black_hole=True)
    assert not hole.accept(packet(bytes(MSS)), now=0.0)
    assert len(answers) == 1 and hole.packets_too_big == 1


def test_the_answer_to_ipv6_is_packet_too_big():
    source, target = bytes([0xFD]) + bytes(14) + b"\1", bytes([0xFD]) + bytes(14) + b"\2"
    sent = struct.pack("!IHBB", 6 << 28, 1460, 17, 64) + source + target + bytes(1460)
    ip = too_big(bytes(OFFLOAD_BYTES) + sent, 1300)[OFFLOAD_BYTES:]
    assert (ip[0] >> 4, ip[6], ip[24:40], int.from_bytes(ip[4:6], "big")) == (6, 58, source, len(ip) - 40)
    assert (ip[40], int.from_bytes(ip[44:48], "big"), len(ip)) == (2, 1300, 1280)
    assert checksum(ip[8:40] + struct.pack("!II", len(ip) - 40, 58) + ip[40:]) == 0
    assert ip[48:] == sent[: 1280 - 48]


def test_a_schedule_changes_delay_loss_and_rate_at_its_times_and_begins_again():
    steps = [Step(0, delay_ms=10), Step(1, delay_ms=30, rate_bps=RATE_BPS), Step(2, loss=1), Step(3, loss=0)]
    changing = Link(target=0)
    asked = asdict(LinkSettings(5, schedule=steps, repeat_s=4)) | {"queue_bytes": None}
    sent = np.arange(0.0005, 8, 0.01)
    arrived = run(changing, [(at, packet(bytes(MSS))) for at in sent], [(0.0, asked)], until_s=10)
    delays = dict.fromkeys(sent.round(4), None)
    for due, *_ in arrived:
        at = next(at for at in (due - 0.010, due - 0.031) if round(at, 4) in delays)
        delays[round(at, 4)] = due - at
    for at, delay in delays.items():
        phase = at % 4
        expected = None if 2 <= phase < 3 else 0.010 if at < 1 else 0.031 if phase >= 1 else 0.011
        if expected == 0.011:
            continue  # the rate of the first round stays, as no step takes it back
        assert delay is None if expected is None else delay == pytest.approx(expected)


def test_what_waits_leaves_at_the_rate_that_the_link_has_then():
    queued = Link(target=0)
    steps = [Step(0.0055, rate_bps=RATE_BPS / 10), Step(0.0255, rate_bps=RATE_BPS)]
    asked = asdict(LinkSettings(0, rate_bps=RATE_BPS, schedule=steps)) | {"queue_bytes": None}
    dues = [due for due, *_ in run(queued, [(0.0, packet(bytes(MSS)))] * 10, [(0.0, asked)])]
    # Five packets, half of one, 20 ms at a tenth of the rate (two packets), and the rest.
    expected = [0.001, 0.002, 0.003, 0.004, 0.005, 0.0105, 0.0205, 0.026, 0.027, 0.028]
    assert dues == pytest.approx(expected)


@pytest.mark.parametrize("limits", [{"queue_packets": 40}, {"codel_target_ms": 5, "ecn": True}, {"codel_target_ms": 1}])
def test_counts_add_up_and_packets_stay_in_order_in_a_queue_that_is_served(limits):
    draw, arrivals, changes, at = random.Random(6), [], [], 0.0
    busy = link(10)
    for _ in range(3000):
        at += draw.expovariate(400)
        raw = packet(bytes(draw.randrange(0, 50_000)), sequence=len(arrivals))
        arrivals.append((at, with_ecn(raw, draw.choice([0, 2]))))
        if draw.random() < 0.01:
            settings = {
                "loss": draw.choice([0, 0.02]),
                "rate_bps": draw.choice([None, 5e6, 80e6]),
                "mean_loss_burst": 3,
            }
            changes.append((at, {"delay_ms": 10, "jitter_ms": 2, "queue_bytes": 200_000, **limits, **settings}))
    arrived = run(busy, arrivals, changes)
    assert busy.packets_queue_dropped and busy.packets_lost
    assert bool(busy.packets_marked) == ("ecn" in limits)
    assert busy.in_flight() == (sum(packets for _, packets, _, _ in arrived), sum(size for _, _, size, _ in arrived))
    assert [due for due, *_ in arrived] == sorted(due for due, *_ in arrived)
    assert busy.backlog_bytes(1e9) == busy._queued_packets == 0
