"""
Links by netem: the commands as text, and the hub for real.

A kernel without netem can still do all the rest (rate, queue, cut, counters); there the delay is left out.
With netem, `test_local_lab` tests the whole.
"""

import json
import math
import re
from itertools import permutations

import pytest

from wanbench.errors import LabError
from wanbench.labs import local
from wanbench.links import LinkSettings, available, launch, tc

WITHOUT_DELAY = """
import sys
from wanbench.links import keeper, netem
keeper.EMULATORS["netem"] = lambda: netem.Netem(lambda delay_ms, jitter_ms, loss: "pfifo limit 100000")
keeper.main()
"""


def test_a_region_drops_what_no_link_is_for():
    assert tc.root("wan0") == [
        "qdisc add dev wan0 root handle 1: stab overhead -14 htb default ffff",
        "class add dev wan0 parent 1: classid 1:ffff htb rate 100000000000bit "
        "burst 12500000 cburst 12500000 quantum 60000",
        "qdisc add dev wan0 parent 1:ffff handle ffff: blackhole",
    ]


def test_a_link_is_a_class_a_leaf_and_a_filter():
    made = tc.link("wan0", "dst", 171, tc.netem(20))
    assert re.match(r"class add dev wan0 parent 1: classid 1:ab htb ", made[0])
    assert made[1] == "qdisc add dev wan0 parent 1:ab handle 1ab: netem limit 1000000 delay 20000us"
    assert made[2] == (
        "filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip dst 10.171.0.0/16 flowid 1:ab"
    )


def test_delay_jitter_and_loss():
    words = tc.netem(20.5, jitter_ms=2, loss=0.001).split()
    assert words[words.index("delay") + 1] == "20500us"
    assert words[words.index("delay") + 2] == f"{round(2000 * math.sqrt(3))}us", "even ± of that deviation"
    assert words[words.index("random") + 1] == "0.1%"
    assert words[words.index("rate") + 1] == "100000000000bit", "a rate keeps the order"


@pytest.mark.parametrize("loss", [1e-7, 1 / 3, 1.0])
def test_a_loss_is_said_exactly_enough(loss):
    said = re.search(r"loss random ([\d.e-]+)%", tc.netem(1, loss=loss))[1]
    assert float(said) / 100 == pytest.approx(loss, rel=1e-8)


def test_nothing_is_said_of_what_is_not_asked_for():
    assert "loss" not in tc.netem(20) and "rate" not in tc.netem(20)


def test_rate_and_queue():
    assert tc.rate("region2", 1, 10e6) == (
        "class change dev region2 parent 1: classid 1:1 htb rate 10000000bit burst 1600 cburst 1600 quantum 60000"
    )
    assert "burst 125000 " in tc.rate("region2", 1, 1e9), "a millisecond"
    assert tc.queue("region2", 1, 65_536) == (
        "qdisc change dev region2 parent 1:1 handle 101: bfifo limit 65536"
    )
    assert "bfifo limit 1600" in tc.queue("region2", 1, 1), "one packet always fits"


def test_a_cut_replaces_the_leaf_and_healing_puts_it_back():
    cut, heal = tc.cut("region2", 1), tc.heal("region2", 1, 65_536)
    assert cut == "qdisc replace dev region2 parent 1:1 handle 1001: blackhole"
    assert heal == "qdisc replace dev region2 parent 1:1 handle 101: bfifo limit 65536"


def test_handles_of_254_regions_do_not_collide():
    handles = [
        re.search(r"handle (\w+):", command)[1]
        for number in range(1, 255)
        for command in (tc.queue("d", number, None), tc.cut("d", number))
    ]
    assert len({*handles, "1", "ffff"}) == 2 * 254 + 2
    assert all(int(handle, 16) <= 0xFFFF for handle in handles)


def test_counts_are_found_by_device_and_class():
    listing = [
        {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True},
        {"kind": "htb", "handle": "1:", "dev": "region2", "root": True, "packets": 9},
        {"kind": "bfifo", "handle": "1ab:", "dev": "region2", "parent": "1:ab", "packets": 3},
    ]
    assert tc.leaves(listing) == {("region2", 171): listing[2]}


@pytest.fixture
def hub(monkeypatch):
    """An open lab of three regions whose links have rate, queue and cuts, but no delay."""
    if reason := available.hub_why_not():
        pytest.skip(reason)
    monkeypatch.setattr(launch, "PROGRAM", ("-c", WITHOUT_DELAY))
    monkeypatch.setattr(local, "why_not", lambda emulator: None)
    regions = ["a", "b", "c", "far"]
    links = {pair: LinkSettings(10, rate_bps=20e6) for pair in permutations(regions[:3], 2)}
    with local.LocalLab(regions, links, emulator="netem") as lab:
        yield lab


def counts(lab, from_region, to_region):
    return next(
        row for row in lab.counters() if (row["from_region"], row["to_region"]) == (from_region, to_region)
    )


def answers(lab, from_region, to_region):
    command = ["ping", "-n", "-c", "4", "-i", "0.02", "-W", "0.2", lab.host(to_region).address]
    done = lab.host(from_region).run(command, timeout_s=10, ok=(0, 1))
    return done.stdout.count(b"icmp_seq=")


@pytest.mark.lab
def test_the_hub_forwards_between_linked_regions_only(hub):
    assert answers(hub, "a", "b") == answers(hub, "c", "a") == 4
    assert answers(hub, "a", "far") == 0


@pytest.mark.lab
def test_the_hub_gives_tcp_the_rate_and_drops_where_the_queue_is(hub):
    server = hub.host("b").start(["iperf3", "-s", "-1", "--forceflush"])
    server.wait_for_output("listening", 10)
    command = ["iperf3", "-c", hub.host("b").address, "-J", "-t", "3", "-O", "1"]
    end = json.loads(hub.host("a").run(command, timeout_s=30).stdout)["end"]
    assert 0.95 * 20e6 <= end["sum_received"]["bits_per_second"] <= 1448 / 1500 * 20e6 * 1.02
    dropping = {
        (row["from_region"], row["to_region"]) for row in hub.counters() if row["packets_queue_dropped"]
    }
    assert dropping == {("a", "b")}
    row = counts(hub, "a", "b")
    assert row["bytes_delivered"] / row["packets_delivered"] == pytest.approx(1500, rel=0.01), (
        "sizes are of IP"
    )
    others = row["packets_queue_dropped"] + row["packets_in_flight"]
    assert row["packets_sent"] == row["packets_delivered"] + others


@pytest.mark.lab
def test_the_hub_cuts_heals_and_counts_on(hub):
    assert answers(hub, "a", "b") == 4
    hub.cut("a", "b", one_way=True)
    assert answers(hub, "a", "b") == 0
    hub.set_link("a", "b", rate_bps=1e6)
    assert answers(hub, "a", "b") == 0, "new settings do not heal"
    hub.heal("a", "b", one_way=True)
    assert answers(hub, "a", "b") == 4
    hub.cut("a", "b")
    hub.heal("a", "b")
    row = counts(hub, "a", "b")
    assert (row["packets_sent"], row["packets_delivered"], row["packets_cut"]) == (16, 8, 8)
    assert (row["bytes_sent"], row["bytes_delivered"]) == (16 * 84, 8 * 84)
    assert (row["bytes_lost"], row["bytes_cut"]) == (0, None), "tc counts no bytes of what it drops"
    assert counts(hub, "b", "a")["packets_delivered"] == 8


@pytest.mark.lab
def test_what_tc_refuses_is_an_error_and_the_lab_goes_on(hub):
    settings = {"delay_ms": 0, "jitter_ms": 0, "loss": 0, "rate_bps": 1e30, "queue_bytes": 1}
    with pytest.raises(LabError, match="tc says"):
        hub._ask("set", links=[[1, 2, settings]])
    assert answers(hub, "a", "b") == 4
