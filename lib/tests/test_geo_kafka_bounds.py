"""Bounds of each trial and what it reached: against simulated tables with a known answer."""

import numpy as np
import pytest
from geo_trials import KERNEL, rates, reading, tables_of, trial

from wanbench.errors import MissingDataError
from wanbench.pages.geo_kafka import bounds, curves
from wanbench.pages.geo_kafka.region_limits import WIRE


def test_the_lowest_bound_is_named_and_what_was_reached_of_it():
    made_rates, tables = reading()
    found = bounds(curves(made_rates), made_rates, tables)
    assert set(found.trials.limit) == {"machine"} and found.trials.busy_percent.to_numpy() == pytest.approx(50)
    assert found.trials.reached.isna().all() and "lowest limit: machine 12." in found.sentence
    share = found.of("leaders")
    assert share.lowest is None and "equals the utilisation" in share.sentence
    assert share.link.estimate == pytest.approx(4e7 / 1e8 * (5 / 9) * 1500 / 1448)
    assert "busiest machine were 50 % busy" in str(share) and share.link.n == 4
    assert found.trials.fullest_link.notna().all() and len(found.figure().data) == 2
    assert found.table().set_index("setting").limits["nobody"] == "machine"
    assert (
        "lowest limit" in found.formatted_table() and "limits" not in found.formatted_table()
    )  # half the processors are idle
    with pytest.raises(MissingDataError, match="no trial of 'tuned'"):
        found.of("tuned")


def test_a_trial_beyond_its_bound_is_cautioned():
    """Kafka's own buffer of replica fetchers lets 29 Mbit/s pass over 70 ms, and these trials claim 40."""
    made_rates, tables = reading(brokers={})
    found = bounds(curves(made_rates), made_rates, tables)
    assert set(found.trials.limit) == {"replication"} and "12 trials reached more than a limit allows" in str(found)


def test_without_metrics_the_machine_is_no_bound_and_a_caution_says_so():
    made_rates, tables = reading()
    found = bounds(curves(made_rates), made_rates, {name: tables[name] for name in ("links", "placements")})
    assert "machine" not in set(found.trials.limit) and "without processor metrics" in str(found)


def test_without_placements_there_are_no_bounds():
    made_rates, tables = reading()
    with pytest.raises(MissingDataError, match="placements"):
        bounds(curves(made_rates), made_rates, {"links": tables["links"]})


def test_each_setting_has_its_own_share_and_there_is_no_mean_over_settings():
    """Settings reach 0.2 and 0.8 of the links; a mean of them would be the share of no setting."""
    rng, rows, brokers = np.random.default_rng(0), [], KERNEL | {"socket.receive.buffer.bytes": -1}
    for block in range(1, 5):
        for name, share, changes in (("baseline", 0.2, {}), ("wide", 0.8, {"batch_bytes": 131_072})):
            bps = share * 1e8 * (9 / 5) / WIRE * np.exp(rng.normal(0, 0.01))
            rows.append(trial(name, bps, block=block, broker_settings=brokers, **changes))
    found_rates = rates(rows)
    tables = tables_of(found_rates, [1.0] * len(rows))
    metrics = tables["metrics"]
    busy = metrics.assign(value=metrics.value.where(metrics.metric != "idle", 94.0))
    found = bounds(curves(found_rates), found_rates, tables | {"metrics": busy})
    assert set(found.trials.limit) == {"link"} and found.estimates == ()
    assert (
        found.sentence
        == "Number of trials by lowest limit: link 8. A limit within 10 % of a trial's lowest limit counts too."
    )
    assert found.table().set_index("setting").reached.to_dict() == pytest.approx(
        {"baseline": 0.2, "wide": 0.8}, rel=0.02
    )
    assert found.of("wide").lowest.low > 0.7
