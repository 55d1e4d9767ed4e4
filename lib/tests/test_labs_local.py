"""What the local lab is made of: hosts, addresses, devices, and how it shows itself."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest

from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

pytestmark = pytest.mark.lab

REGIONS = ["centre", "near", "far"]


@pytest.fixture(scope="module")
def lab():
    links = dict.fromkeys(permutations(REGIONS, 2), LinkSettings(1))
    with LocalLab(REGIONS, links, hosts_per_region=2, seed=1) as opened:
        yield opened


def test_a_closed_lab_has_the_links_it_was_made_with():
    links = {("here", "there"): LinkSettings(1), ("there", "here"): LinkSettings(2)}
    with LocalLab(["here", "there"], links) as lab:
        lab.set_link("here", "there", delay_ms=5)
        assert lab.links["here", "there"].delay_ms == 5
    assert lab.links == links


NOBODY_TAKES_IT = r"""
import socket
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as device:
    device.bind(("lo", 0))
    device.send(bytes(12) + b"\x88\xb5" + bytes(50))  # an EtherType for experiments, IEEE 802
"""


def test_what_the_kernel_drops_outside_the_links_is_counted(lab):
    def dropped():
        found = [(row["region"], row["device"], row["packets_dropped_receiving"]) for row in lab.devices()]
        assert len(found) == 2 * len(REGIONS)
        return {(region, device): packets for region, device, packets in found if packets}

    before = dropped()
    lab.host("far").run([sys.executable, "-c", NOBODY_TAKES_IT], timeout_s=20)
    new = {place: packets - before.get(place, 0) for place, packets in dropped().items()}
    assert new["far", "lo"] == 1 and sum(new.values()) == 1


def test_a_lab_describes_itself_in_json(lab):
    lab.host("centre").run(["ping", "-n", "-c", "1", lab.host("far").address], timeout_s=30)
    described = json.loads(json.dumps(lab.describe()))
    assert described["kind"] == "local"
    assert described["emulator"] == "relay"
    assert described["congestion_control"] == "cubic"
    assert described["sysctls"]["net.ipv4.tcp_no_metrics_save"] == "1"
    assert len(described["hosts"]) == 2 * len(REGIONS)
    assert described["hosts"][1] == {
        **{"name": "centre/1", "region": "centre"},
        **{"address": "10.1.0.2", "address_ipv6": "fd77:616e:62:1::2"},
    }
    assert len(described["links"]) == len(lab.links)
    assert described["tools"]["iperf3"].startswith("iperf")
    assert (described["clock_offset_ms"], described["clock_offset_from"]) == (0, "one machine, one clock")
    assert 0 < described["lateness"]["mean_late_ms"] <= described["lateness"]["worst_late_ms"]


def test_a_lab_shows_how_to_enter_a_region_by_hand(lab):
    command = [*lab.entering("far"), "ip", "addr", "show", "dev", "lo"]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"10.3.0.1/32" in shown and b"fd77:616e:62:3::1/128" in shown


def test_hosts_of_one_region_have_addresses_of_their_own(lab):
    first, second = lab.hosts["near"]
    assert first.address != second.address
    host = lab.host("centre", 1)
    text = host.run(["ping", "-n", "-c", "1", "-I", host.address, second.address], timeout_s=30).stdout.decode()
    assert f"from {host.address}" in text


def test_commands_of_many_threads_run_at_once_each_with_its_own_output(lab):
    hosts = [lab.host(region) for region in REGIONS]

    def run(k):
        host = hosts[k % len(hosts)]
        done = host.run(
            ["sh", "-c", f"echo {k}; sleep 0.2; echo {host.address} >&2; exit {k % 3}"], timeout_s=20, ok=None
        )
        return done.stdout, done.stderr, done.returncode

    with ThreadPoolExecutor(23) as threads:
        for k, (stdout, stderr, returncode) in enumerate(threads.map(run, range(46))):
            assert (stdout, returncode) == (f"{k}\n".encode(), k % 3)
            assert stderr == f"{hosts[k % len(hosts)].address}\n".encode()


def test_the_kernel_cuts_a_socket_buffer_to_what_the_lab_says(lab):
    limits = lab.socket_buffer_limits()
    program = (
        "import socket; s = socket.socket(); "
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30); "
        "print(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))"
    )
    given = int(lab.host("centre").run([sys.executable, "-c", program], timeout_s=60).stdout)
    assert given == 2 * limits["net.core.rmem_max"], "twice, as the kernel adds room for its own data"
