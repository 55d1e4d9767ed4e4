"""Which pairs are planned, what the plan says of itself, what it would cost."""

import json

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs.rented.costs import Costs, prices
from wanbench.measure.plan import Trial, make_plan, make_trials, pair, select_pairs
from wanbench.regions import distance_km

EXPERIMENTS = [Ping(count=5), Iperf3(rate_bps=4e7)]
EIGHT = [
    "aws:eu-west-1", "aws:us-east-1", "aws:sa-east-1",
    "gcp:us-east1", "gcp:europe-west1", "gcp:asia-east1",
    "azure:westeurope", "azure:eastus",
]  # fmt: skip


def ordered_pairs(plan):
    return [(test.from_region, test.to_region) for test in plan.tests]


def test_explicit_pairs():
    plan = make_plan(experiments=EXPERIMENTS, pairs=["aws:eu-west-1->gcp:us-east1", ("gcp:us-east1", "azure:eastus")])
    assert sorted(ordered_pairs(plan)) == [("aws:eu-west-1", "gcp:us-east1"), ("gcp:us-east1", "azure:eastus")]


@pytest.mark.parametrize("name", ["Site A", "x" * 81, "a/b", "", "-a", "hôte", None, 7])
def test_a_name_that_no_raw_file_can_have_is_refused_at_planning(name):
    for ends in ((name, "b", []), ("a", name, []), ("a", "b", [name])):
        with pytest.raises(ParameterError, match=r"region is .*; allowed: letters, digits, .* at most 80 characters"):
            make_trials([Trial("x", (Ping(),))], from_region=ends[0], to_region=ends[1], more_regions=ends[2])


def test_a_long_name_of_a_cloud_is_refused_at_planning():
    with pytest.raises(ParameterError, match="at most 80 characters"):
        make_plan(experiments=EXPERIMENTS, pairs=[("aws:" + "x" * 300, "aws:eu-west-1")])


def test_pairs_can_be_chosen_by_distance():
    near = select_pairs(regions=EIGHT, distance_km=[0, 1000])
    far = select_pairs(regions=EIGHT, distance_km=[5000, 7000])
    assert near and far and all(distance_km(*pair) <= 1000 for pair in near)
    assert all(5000 <= distance_km(*pair) <= 7000 for pair in far)
    with pytest.raises(ParameterError, match=r"No pair is left.*0 after distances of 30000 to 40000 km"):
        select_pairs(regions=EIGHT, distance_km=[30_000, 40_000])


def test_cloud_pairs_are_directed():
    found = select_pairs(regions=EIGHT, cloud_pairs=["gcp->aws", "azure->azure"])
    clouds = {(a.split(":")[0], b.split(":")[0]) for a, b in found}
    assert clouds == {("gcp", "aws"), ("azure", "azure")}
    assert len(found) == 9 + 2


def test_all_catalogued_regions_without_restriction():
    found = select_pairs()
    names = {name for p in found for name in p}
    assert len(names) > 100 and len(found) == len(names) * (len(names) - 1)


def test_tests_are_named_by_ordinal_and_pair():
    plan = make_plan(experiments=EXPERIMENTS, regions=EIGHT, seed=4)
    assert [test.id[:5] for test in plan.tests] == [f"{n:04d}-" for n in range(1, 57)]
    for test in plan.tests:
        assert test.id[5:] == f"{test.from_region}-{test.to_region}".replace(":", ".")
        assert test in plan.rounds[test.round - 1]


def test_same_seed_same_plan():
    arguments = {"experiments": EXPERIMENTS, "regions": EIGHT, "seed": 11}
    assert make_plan(**arguments) == make_plan(**arguments)
    assert make_plan(**arguments) != make_plan(**{**arguments, "seed": 12})


def test_expected_time_is_the_sum_of_the_longest_tests():
    rtts = dict.fromkeys(select_pairs(regions=EIGHT), 10.0) | {(EIGHT[0], EIGHT[1]): 300.0, (EIGHT[1], EIGHT[0]): 300.0}
    ping = Ping(count=11, interval_s=0.1)
    plan = make_plan(experiments=[ping], regions=EIGHT, rtt_ms=rtts)
    fast, slow = ping.expected_s(10.0), ping.expected_s(300.0)
    assert plan.expected_s() == pytest.approx(12 * fast + 2 * slow)
    assert len(plan.slots_s()) == 14 == plan.lower_bound


def test_expected_rtt_comes_from_light_and_inflation():
    one = make_plan(experiments=EXPERIMENTS, pairs=["aws:eu-west-1->gcp:us-east1"], path_inflation=1.0)
    two = make_plan(experiments=EXPERIMENTS, pairs=["aws:eu-west-1->gcp:us-east1"], path_inflation=2.0)
    assert two.tests[0].rtt_ms == pytest.approx(2 * one.tests[0].rtt_ms) and one.tests[0].rtt_ms > 30


def test_a_matrix_may_give_one_direction():
    plan = make_plan(experiments=EXPERIMENTS, pairs=["a:x->a:y"], rtt_ms={("a:y", "a:x"): 42.0})
    assert plan.tests[0].rtt_ms == 42.0


def test_volume():
    pairs = ["aws:eu-west-1->gcp:us-east1", "gcp:us-east1->aws:eu-west-1"]
    plan = make_plan(experiments=EXPERIMENTS, pairs=pairs)
    assert plan.expected_bytes() == 2 * (10_000_000 + 2 * 5 * 84)
    assert make_plan(experiments=[Iperf3()], pairs=pairs).expected_bytes() is None
    assert make_plan(experiments=[Iperf3()], pairs=pairs, rate_bps=8e6).expected_bytes() == 4e6


def test_cost_by_hand():
    plan = make_plan(
        experiments=[Iperf3(duration_s=8)],
        pairs=["aws:eu-west-1->gcp:us-east1", "gcp:us-east1->gcp:us-west1"],
        rate_bps=1e9,
    )
    wanted = {
        "aws": ("small", {"small": 1.0, "egress to internet": 0.1, "egress between regions": 0.02}),
        "gcp": ("tiny", {"tiny": (0.5, 2.0), "egress to internet": 0.2, "egress between regions": 0.01}),
    }
    tables = []
    for cloud, (instance_type, overrides) in wanted.items():
        regions = [region for region in plan.regions if region.startswith(cloud)]
        costs = Costs(regions, instance_type=instance_type, hosts_per_region=1, overrides=overrides)
        tables.append(costs.of(plan.sent_bytes(), plan.expected_s(), set_up_s=300).table)
    table = pd.concat(tables).set_index(["cloud", "item"])
    hours = (plan.expected_s() + 300) / 3600
    assert table.loc[("aws", "small"), "low_usd"] == pytest.approx(hours)
    assert table.loc[("gcp", "tiny"), "high_usd"] == pytest.approx(2 * hours * 2.0)
    assert table.loc[("aws", "egress to internet"), "low_usd"] == pytest.approx(0.1)
    assert table.loc[("aws", "egress between regions"), "high_usd"] == 0
    assert table.loc[("gcp", "egress between regions"), "low_usd"] == pytest.approx(0.01)
    assert table.loc[("gcp", "egress to internet"), "amount"] == 0


def test_reverse_is_sent_by_the_other_side():
    plan = make_plan(
        experiments=[Iperf3(duration_s=8, rate_bps=1e9, reverse=True)], pairs=["aws:eu-west-1->gcp:us-east1"]
    )
    assert plan.sent_bytes() == {("gcp:us-east1", "aws:eu-west-1"): 1e9}


def test_the_price_list_says_where_it_comes_from():
    table = prices()
    assert (table["low_usd"] <= table["high_usd"]).all() and (table["low_usd"] > 0).all()
    assert table["source"].str.len().min() > 10
    assert table["as_of"].str.fullmatch(r"20\d\d-\d\d").all()
    assert not table.duplicated(["cloud", "item"]).any()
    assert table.set_index("item").low_usd["m7g.2xlarge"] == 0.3264
    changed = prices({"aws": {"t3.nano": 0.5}})
    assert len(changed) == len(table)
    assert changed.set_index(["cloud", "item"]).loc[("aws", "t3.nano"), "low_usd"] == 0.5


def test_the_plan_prints_what_it_takes():
    plan = make_plan(experiments=EXPERIMENTS, regions=EIGHT, rate_bps=1e8)
    text = str(plan)
    for part in (
        "56 ordered pairs of 8 regions",
        "14, with at most 4 tests at once (14 is the minimum)",
        "up to 0.56 GB",
    ):
        assert part in text
    json.dumps(plan.as_dict(), allow_nan=False)


def test_html_is_escaped():
    class Odd(Ping):
        def __str__(self):
            return "<script>alert(1)</script>"

    shown = make_plan(experiments=[Odd()], regions=EIGHT)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    assert "and 2 more" in shown


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"regions": ["aws:eu-west-1", "../../etc"]}, "allowed: '<cloud>:<code>'"),
        ({"regions": ["aws:eu-west-1", "AWS:eu-west-2"]}, "lower case"),
        ({"regions": ["aws:eu-west-1", "aws:no-where-9"]}, "no-where-9"),
        ({"pairs": ["aws:eu-west-1"]}, "two regions"),
        ({"pairs": ["aws:eu-west-1->aws:eu-west-1"]}, "two different regions"),
        ({"pairs": ["aws:eu-west-1->gcp:us-east1", ("aws:eu-west-1", "gcp:us-east1")]}, "more than once"),
        ({"regions": EIGHT, "cloud_pairs": ["ibm->ibm"]}, "No pair has a region of 'ibm'; allowed: aws, azure, gcp"),
        ({"regions": EIGHT, "distance_km": [3]}, "two numbers, the shortest and the longest"),
        ({"regions": EIGHT, "distance_km": [5, 1]}, "distance_km is 1; allowed: a number of at least 5"),
        ({"regions": EIGHT, "cloud_pairs": ["gcp-aws"]}, "such as 'gcp->aws'"),
        ({"regions": EIGHT[:1]}, "No pair is left.*0 candidate pairs"),
        ({"regions": EIGHT, "batch": 0}, "batch is 0"),
        ({"regions": EIGHT, "path_inflation": 0.5}, "from 1 to"),
        ({"regions": EIGHT, "rate_bps": 0}, "rate_bps is 0"),
        ({"regions": EIGHT, "rate_bps": float("nan")}, "rate_bps is nan"),
        ({"regions": EIGHT, "seed": "x"}, "seed is 'x'"),
        ({"regions": EIGHT, "rtt_ms": {}}, "rtt_ms of"),
        ({"regions": EIGHT, "rtt_ms": dict.fromkeys(select_pairs(regions=EIGHT), float("nan"))}, "is nan"),
        ({"regions": EIGHT, "experiments": []}, "at least one experiment"),
    ],
)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(ParameterError, match=message):
        make_plan(**{"experiments": EXPERIMENTS, **arguments})


@pytest.mark.parametrize("price", [-1, float("nan"), (2, 1), float("inf")])
def test_prices_must_make_sense(price):
    with pytest.raises(ParameterError, match="price of"):
        prices({"aws": {"t3.nano": price}})


def test_pair_accepts_text_and_sequence():
    assert pair("a:x -> b:y") == pair(["a:x", "b:y"]) == ("a:x", "b:y")


def test_a_plan_with_numbers_of_numpy_can_be_kept_in_a_manifest():
    def plan(whole, real):
        return make_plan(
            experiments=EXPERIMENTS,
            regions=EIGHT,
            batch=whole(1),
            rate_bps=real(1e6),
            path_inflation=real(2),
            seed=whole(3),
        )

    assert json.dumps(plan(np.int64, np.float32).as_dict()) == json.dumps(plan(int, float).as_dict())
