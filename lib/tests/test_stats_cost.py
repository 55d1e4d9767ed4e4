"""The cost of a cluster, its interval and what it depends on, against arithmetic done by hand."""

import json
from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from simulations import cost, simulation

from wanbench.errors import MissingDataError, ParameterError, RawDataError
from wanbench.methods.cost import Deployment, cluster_cost, price, price_list
from wanbench.methods.result import Estimate
from wanbench.methods.trials.rates import TrialRates
from wanbench.pages.geo_kafka.costs import region_copies, tornado
from wanbench.pages.geo_kafka.region_bytes import count_region_bytes
from wanbench.pages.price_performance import paid_over_listed


def measured(value, low, high, unit="bytes", n=6, level=0.95):
    return Estimate("x", "x is {}", value, low, high, unit, n, "m", "a", basis=f"{n} trials", level=level)


def small(**inputs):
    """A million messages an hour: 2 USD an hour fixed, and 1 USD per GB for 1,000 bytes of each."""
    base = {
        "brokers": 2, "instance_usd_per_hour": 1, "messages_per_s": 1e6 / 3600, "message_bytes": 500,
        "region_bytes_per_message": 1000, "region_usd_per_gb": 1,
    }  # fmt: skip
    return Deployment(**base | inputs)


def test_every_part_per_every_measure():
    by = cluster_cost(small(disks=2, disk_gb=73, disk_usd_per_gb_month=5)).by
    expected = {  # 2 x 73 x 5 = 730 USD a month are 1 USD an hour; a million messages are half a GB
        "hour": (3, 1, 4), "million messages": (3, 1, 4), "GB": (6, 2, 8), "year": (26_280, 8_760, 35_040),
    }  # fmt: skip
    for per, parts in expected.items():
        for part, usd in zip(("fixed", "variable", "total"), parts, strict=True):
            assert by[part, per].estimate == pytest.approx(usd), (part, per)


def test_the_rate_changes_the_price_of_a_message_and_not_that_of_an_hour_without_traffic():
    priced = cluster_cost(replace(small(), messages_per_s=2e6 / 3600))
    assert priced.by["fixed", "hour"].estimate == 2
    assert priced.by["total", "million messages"].estimate == pytest.approx(2)
    assert priced.even_messages_per_s == pytest.approx(2e6 / 3600)
    assert priced.variable_over_fixed.estimate == pytest.approx(1)


def test_measured_inputs_give_the_interval_and_prices_the_widest_range():
    priced = cluster_cost(
        small(
            region_bytes_per_message=measured(1000, 700, 1300),
            messages_per_s=measured(1e6 / 3600, 0.8e6 / 3600, 1e6 / 3600 * 1.25, "messages/s", 4),
            region_usd_per_gb=(1, 1, 2),
        )
    )
    million = priced.by["total", "million messages"]
    # Bytes move the price by 0.3 either way; the rate moves the fixed 2 USD to 2.5 and to 1.6.
    assert million.estimate == pytest.approx(3)
    assert (million.low, million.high) == pytest.approx((3 - sqrt(0.3**2 + 0.4**2), 3 + sqrt(0.3**2 + 0.5**2)))
    assert (million.others[0].low, million.others[0].high) == pytest.approx((1.6 + 0.7, 2.5 + 2.6))
    assert million.n == 4 and million.basis == "4 trials"
    assert isnan(priced.by["fixed", "hour"].low)
    assert "4 trials" in priced.sentence and "all inputs at the ends of their ranges" in priced.sentence


def test_without_anything_measured_there_is_no_interval():
    priced = cluster_cost(small(region_usd_per_gb=(0.5, 1, 2)))
    million = priced.by["total", "million messages"]
    assert isnan(million.low) and (million.others[0].low, million.others[0].high) == (2.5, 4)
    assert "none measured" in million.basis
    unknown = cluster_cost(small(region_bytes_per_message=measured(1000, float("nan"), float("nan"))))
    assert "region_bytes_per_message was measured without one" in str(unknown)


def test_messages_that_cost_nothing():
    priced = cluster_cost(small(region_usd_per_gb=0))
    assert priced.even_messages_per_s == float("inf")
    assert cluster_cost(small(brokers=0)).variable_over_fixed is None


@pytest.mark.parametrize(
    "inputs, text",
    [
        ({"messages_per_s": 0}, "messages_per_s is 0.*above 0"),
        ({"message_bytes": (0, 1, 2)}, "a range above 0"),
        ({"brokers": -1}, "brokers is -1; allowed: a number of at least 0"),
        ({"brokers": float("nan")}, "brokers is nan"),
        ({"brokers": float("inf")}, "brokers is inf; allowed: a finite number"),
        ({"region_usd_per_gb": (1, 3, 2)}, "inside its range"),
        ({"region_usd_per_gb": (1, 2)}, r"allowed: a number, \(low, value, high\)"),
        ({"brokers": measured(float("nan"), 1, 2)}, "brokers is nan"),
        (
            {"region_bytes_per_message": measured(1, 1, 2), "brokers": measured(1, 1, 2, level=0.9)},
            "levels 0.9, 0.95; allowed: one level",
        ),
    ],
)
def test_bad_inputs_are_refused(inputs, text):
    with pytest.raises(ParameterError, match=text):
        small(**inputs)


@pytest.mark.parametrize(
    "settings, produced, replicated, consumed",
    [
        ({"regions": 3, "replication": 3}, 2 / 3, 2, 0),
        ({"regions": 2, "replication": 3}, 1 / 2, 4 / 3, 0),
        ({"regions": 3, "replication": 1}, 2 / 3, 0, 2 / 3),
        ({"regions": 1, "replication": 3}, 0, 0, 0),
    ],
)
def test_how_often_a_message_crosses(settings, produced, replicated, consumed):
    copies = region_copies(**settings)
    assert (copies.produced, copies.replicated, copies.consumed) == pytest.approx((produced, replicated, consumed))


def test_the_tornado_and_its_figure():
    found = tornado(
        small(
            region_bytes_per_message=measured(1000, 900, 1100), instance_usd_per_hour=(0.5, 1, 1.5), brokers=(2, 2, 3)
        )
    )
    rows = found.rows.set_index("input")
    assert rows.swing_usd.round(9).to_dict() == {
        "instance_usd_per_hour": 2, "brokers": 1, "region_bytes_per_message": 0.2
    }  # fmt: skip
    assert rows.loc["brokers", ["usd_at_low", "usd_at_high"]].tolist() == [3, 4]
    assert "depends most on the price of an instance" in found.sentence
    figure = found.figure()
    spans = [(round(bar.base[0], 9), round(bar.x[0], 9)) for bar in figure.data]
    assert spans == [(2.0, 2.0), (2.9, 0.2)]
    assert figure.layout.yaxis.ticktext[0] == "price of an instance<br>0.500 to 1.50 USD/h"
    with pytest.raises(ParameterError, match="no input of the deployment has a range"):
        tornado(small())


def test_prices_have_a_date_and_a_source():
    prices = price_list()
    assert (prices.as_of.str.len() >= 4).all() and {"aws", "azure", "gcp"} <= set(prices.provider)
    dear = price("azure", "egress between regions", region="dearest regions")
    assert (dear.value, dear.low, dear.high) == (0.16, 0.02, 0.16) and "2026-11" in dear.source
    assert price("aws", "m7g.2xlarge").value == 0.3264
    with pytest.raises(ParameterError, match=r"several prices .*0.02 for 'cheapest regions'.*say which with region="):
        price("aws", "egress between regions")
    with pytest.raises(ParameterError, match="item of aws is 'z'; allowed: 'egress between regions'"):
        price("aws", "z")
    with pytest.raises(ParameterError, match="provider is 'ovh'"):
        price("ovh", "disk")


@pytest.mark.parametrize(
    "row",
    [
        "aws,m,hour,free,any,spot,2020,s,o",
        "aws,m,day,1,any,spot,2020,s,o",
        "aws,m,hour,1,any,spot,,s,o",
        "aws,m,hour,1,any,,2020,s,o",
        "aws,m,hour,-1,any,spot,2020,s,o",
    ],
)
def test_a_price_that_cannot_be_used_is_refused_with_its_line(tmp_path, row):
    head = "provider,item,unit,price_usd,region,term,as_of,source,obtained\n"
    path = tmp_path / "prices.csv"
    path.write_text(f"{head}aws,m,hour,1,any,spot,2020,s,o\n{row}\n")
    with pytest.raises(RawDataError, match=r"prices\.csv:3"):
        price_list(path)
    path.write_text(f"{head}aws,m,hour,2,any,on demand,2020,s,o\naws,m,hour,1,any,spot,2020,s,o\n")
    assert price("aws", "m", term="spot", prices=price_list(path)).value == 1
    assert paid_over_listed("aws", ["m"], "spot", prices=price_list(path)) == {"m": 0.5}
    with pytest.raises(ParameterError, match="term of 'm' is 'reserved'; allowed: 'on demand', 'spot'"):
        price("aws", "m", term="reserved", prices=price_list(path))
    path.write_text("provider,price\n")
    with pytest.raises(RawDataError, match="the columns provider, item"):
        price_list(path)


PAIRS = [("a", "b"), ("b", "a"), ("a", "c")]


def counted(bytes_per_message, messages, *, settings=None):
    """Rates and tables of trials: all links together carry so many bytes per message in each, and as many are lost."""
    rows, samples, batches = [], [], []
    for k, (each, n) in enumerate(zip(bytes_per_message, messages, strict=True)):
        key = {"run_id": "r", "test_id": f"{k}", "attempt": 1}
        about = {"setting": settings[k] if settings else "baseline", "background_bps": None}
        rows.append(key | about | {"records_per_s": n / 10, "start_s": 1000.0 * k, "end_s": 1000.0 * k + 10})
        batches += [
            key | {"broker": broker, "topic": "t", "partition": 0, "at_s": 0, "batches": 1, "records": n}
            for broker in (1, 2)  # two replicas, one of which counts
        ]
        for a, b in PAIRS:
            samples += [
                key | {"link_from": a, "link_to": b, "at_s": at_s, "bytes_lost": 0.25 * total + 5}
                | {"bytes_delivered": 0.75 * total + 7}
                for at_s, total in ((0.0, 0.0), (5.0, each * n / 6), (20.0, each * n / 3))
            ]  # fmt: skip
    empty = pd.DataFrame({"setting": []})
    rates = TrialRates(pd.DataFrame(rows).astype({"background_bps": "float64"}), empty, empty, "")
    links = pd.DataFrame([{"run_id": "r", "from_region": a, "to_region": b} for a, b in PAIRS])
    return rates, {"links": links, "link_samples": pd.DataFrame(samples), "batches": pd.DataFrame(batches)}


def test_bytes_between_regions_are_those_of_whole_trials_lost_ones_included():
    found = count_region_bytes(*counted([2.7, 2.7, 2.7], [10_000, 10_000, 20_000]))
    assert found.per_message.estimate == pytest.approx(2.7) and found.per_message.n == 3
    assert found.per_message.low == pytest.approx(2.7) and found.messages_per_s.low > 0
    assert found.messages_per_s.estimate == pytest.approx(2 ** (1 / 3) * 1000)


def test_the_interval_is_that_of_trials():
    per_message = count_region_bytes(*counted([2.7, 3.0], [1000, 1000])).per_message
    half = stats.t.ppf(0.975, 1) * np.log(10 / 9) / 2  # two logarithms: their deviation over the root of two
    assert per_message.estimate == pytest.approx(3 * sqrt(0.9))
    assert np.log(per_message.high / per_message.estimate) == pytest.approx(half)
    assert "no interval: a single trial" in str(count_region_bytes(*counted([2.7], [1000])).per_message)


def test_trials_without_the_counters_of_all_links_are_left_out_and_said():
    rates, tables = counted([2.7, 2.7], [1000, 1000])
    samples = tables["link_samples"]
    some = samples[(samples.test_id == "0") | (samples.link_to != "c")]
    found = count_region_bytes(rates, tables | {"link_samples": some})
    assert found.per_message.n == 1 and "1 trial left out" in str(found.per_message)
    with pytest.raises(MissingDataError, match="no trial has the counters of all links"):
        count_region_bytes(rates, tables | {"link_samples": samples[samples.link_to != "c"]})
    with pytest.raises(MissingDataError, match="no table for this section"):  # as on a real network
        count_region_bytes(rates, {name: table for name, table in tables.items() if name != "link_samples"})


def test_trials_of_several_settings_are_refused():
    with pytest.raises(ParameterError, match=r"the trials have 2 settings \(a, b\); allowed: one"):
        count_region_bytes(*counted([9, 9], [1, 1], settings=["a", "b"]))


def test_a_rate_that_may_be_nothing_leaves_the_price_open_above():
    wide = measured(1e6 / 3600, 0, 2e6 / 3600, "messages/s")
    by = cluster_cost(small(messages_per_s=wide)).by
    assert by["total", "million messages"].high == float("inf")
    assert by["total", "million messages"].low == pytest.approx(2)
    assert by["variable", "million messages"].estimate == pytest.approx(1)
    assert by["total", "hour"].high == pytest.approx(4)


def test_the_committed_coverage():
    table = simulation.read("cost")
    assert set(table.setting) == {json.dumps(setting) for setting in cost.SETTINGS}
    independent = table[table.setting.str.contains('"correlation": 0.0') & (table.method == cost.METHOD)]
    assert (independent.coverage >= 0.94).all()
    assert (table.coverage[table.method == cost.WORST] >= 0.95).all()
    again = simulation.run(cost, datasets=simulation.FIRST_DATASETS, settings=[cost.SETTINGS[3]])
    assert simulation.compare_counts(table, again).same.all()
