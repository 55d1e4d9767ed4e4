"""Bounds over three regions, against arithmetic by hand."""

import pandas as pd
import pytest

from wanbench.methods.trials.limits import BITS
from wanbench.pages.geo_kafka.region_limits import WIRE, region_limits

A, B, C = "gcp:a", "gcp:b", "gcp:c"
REGIONS = (A, B, C)
LINKS = pd.DataFrame(
    [
        {"run_id": "run", "from_region": a, "to_region": b, "delay_ms": 35.0, "rate_bps": 1e8}
        for a in REGIONS
        for b in REGIONS
        if a != b
    ]
)
PLACED = pd.DataFrame(
    [
        {"partition": p, "replica": k, "broker": (p + k) % 3, "region": REGIONS[(p + k) % 3], "leads": k == 0}
        for p in range(9)
        for k in range(3)
    ]
)
TRIAL = {
    "run_id": "run", "from_region": A, "to_region": B, "delay_ms": None, "rate_bps": None, "client_regions": 3.0,
    "producers": 3.0, "consumers": 3.0, "consumer_groups": 1.0, "client_rack": None, "record_bytes": 1000.0,
    "records_per_s": 1000.0, "log_bytes_per_s": 1e6, "gateway_bps": None, "batch_bytes": 65_536.0, "acks": "all",
    "max_in_flight": 5.0,
}  # fmt: skip
KERNEL = {"socket.receive.buffer.bytes": "-1", "replica.socket.receive.buffer.bytes": "-1"}


def bound(name, broker_settings=KERNEL, placed=PLACED, **changes):
    return region_limits(TRIAL | changes, placed, LINKS, broker_settings=broker_settings)[name]


def test_each_link_carries_its_part_of_all_copies():
    """A ninth from producers to leaders, a third to followers, and a ninth to consumers unless they stay near."""
    assert bound("link") == pytest.approx(1e8 / (1 / 9 + 1 / 3 + 1 / 9) / WIRE)
    assert bound("link", client_rack="region") == pytest.approx(1e8 / (4 / 9) / WIRE)
    assert bound("link", consumer_groups=0.0, consumers=3.0) == pytest.approx(1e8 / (4 / 9) / WIRE)
    assert bound("link", client_rack="region", log_bytes_per_s=2.5e5) == pytest.approx(4e8 / (4 / 9) / WIRE)


def test_a_gateway_carries_all_that_leaves_a_region_in_place_of_the_links():
    assert bound("link", client_rack="region", gateway_bps=1e8) == pytest.approx(1e8 / (8 / 9) / WIRE)
    assert bound("link", client_rack="region", gateway_bps=1e9) == pytest.approx(1e9 / (8 / 9) / WIRE)


def test_producers_in_one_region_load_its_links_more():
    one = bound("link", client_regions=None, consumer_groups=0.0, consumers=0.0)
    assert one == pytest.approx(1e8 / (1 / 3 + 1 / 3) / WIRE)


def test_with_acks_all_one_request_after_the_other_waits_for_followers():
    """Three batches to each broker: one request per producer and broker in the 70 ms that replication takes."""
    request = 3 * 65_536 * BITS
    assert bound("window") == pytest.approx(3 * 3 * request / 0.07)
    assert bound("window", max_in_flight=1.0) == pytest.approx(3 * request * (1 / 0.0702 + 2 / 0.14))


def test_with_acks_1_five_requests_wait_for_the_leader():
    assert bound("window", acks="1") == pytest.approx(3 * 5 * 3 * 65_536 * BITS * (1 / 0.0002 + 2 / 0.07))


def test_a_socket_of_a_broker_bounds_what_far_producers_have_in_flight():
    small = bound("window", {"socket.receive.buffer.bytes": "16384"})
    assert small == pytest.approx(3 * BITS * (3 * 65_536 / 0.07 + 2 * 32_768 * 0.64 / 0.07))


def test_a_follower_fetches_a_window_per_round_trip():
    default = {"socket.receive.buffer.bytes": "-1"}
    assert bound("replication", default) == pytest.approx(3 * BITS * 131_072 * 0.64 / 0.07)
    double = default | {"num.replica.fetchers": "2"}
    assert bound("replication", double) == pytest.approx(2 * bound("replication", default))
    many = default | {"num.replica.fetchers": "8"}  # of three partitions, so that five open no connection
    assert bound("replication", many) == pytest.approx(3 * bound("replication", default))
    assert bound("replication") == pytest.approx(3 * BITS * 3 * 2**20 / 0.07)


def test_replicas_in_one_region_fetch_within_it():
    near = PLACED.assign(region=A)
    assert bound("link", placed=near, client_regions=None, client_rack="region") > 0
    assert bound("replication", placed=near) == pytest.approx(3 * BITS * 3 * 2**20 / 0.0002)
