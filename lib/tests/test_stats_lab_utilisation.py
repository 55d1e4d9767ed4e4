"""How full links were, rates of counters, and busy processors."""

import pandas as pd
import pytest

from wanbench import tables
from wanbench.errors import ParameterError
from wanbench.methods.lab import utilisation
from wanbench.methods.trials import processors
from wanbench.pages.price_performance.trials import STARTED, counter_rates

RATE = 8e6
"""One megabyte a second."""


def samples(delivered, *, test_id="t1", way=("a", "b"), rate_bps=RATE, every_s=1.0, began_s=1000.0, **more):
    """A sample every `every_s` of a link that had delivered so many bytes, in packets of 1,000."""
    rows = []
    for n, size in enumerate(delivered):
        row = {"run_id": "r", "test_id": test_id, "attempt": 1, "from_region": "a", "to_region": "b"}
        row |= {"source_file": "x", "at_s": began_s + n * every_s, "link_from": way[0], "link_to": way[1]}
        row |= {"rate_bps": rate_bps, "packets_sent": size // 1000, "bytes_sent": size, "bytes_delivered": size}
        row |= {"packets_delivered": size // 1000, "packets_lost": 0, "bytes_lost": 0, "packets_queue_dropped": 0}
        row |= {"bytes_backlog": 0} | {name: values[n] for name, values in more.items()}
        rows.append(row)
    return tables.from_rows("link_samples", rows)


def test_windows_are_what_was_carried_over_the_rate():
    found = utilisation.windows(samples([0, 500_000, 1_500_000, 1_500_000]))
    assert found.utilisation.tolist() == [0.5, 1.0, 0.0] and found.carried_bps.tolist() == [4e6, 8e6, 0.0]
    assert found.packets_per_s.tolist() == [500, 1000, 0]
    assert found[["start_s", "end_s"]].values.tolist()[0] == [1000, 1001]


def test_what_was_lost_had_used_the_link():
    found = utilisation.windows(samples([0, 500_000], bytes_lost=[0, 250_000]))
    assert found.utilisation.tolist() == [0.75]


def test_a_burst_of_one_window_shows():
    frame = samples([0, 1_000_000, 1_000_000, 1_000_000, 1_000_000])
    assert utilisation.capacity(frame).links.max_utilisation[0] == 1.0


def test_another_lab_and_another_rate_make_no_window():
    assert len(utilisation.windows(samples([0, 900_000, 100_000, 200_000]))) == 2
    changed = pd.concat([samples([0]), samples([500_000], rate_bps=2 * RATE, began_s=1001.0)])
    found = utilisation.windows(changed)
    assert found.utilisation.isna().all() and found.carried_bps.tolist() == [4e6]


def test_tests_and_directions_are_never_mixed():
    frame = pd.concat(
        [samples([0, 10_000]), samples([0, 20_000], way=("b", "a")), samples([50_000, 90_000], test_id="t2")]
    )
    assert sorted(utilisation.windows(frame).carried_bps) == [80_000, 160_000, 320_000]


def test_without_a_rate_nothing_can_be_judged():
    with pytest.raises(ParameterError, match="none can be judged"):
        utilisation.capacity(samples([0, 1000], rate_bps=None))
    with pytest.raises(ParameterError, match="none can be judged"):
        utilisation.capacity(samples([0]))


def test_never_at_capacity_is_a_statement_with_its_window():
    frame = pd.concat([samples([0, 600_000, 1_350_000], test_id=f"t{n}") for n in range(3)])
    found = utilisation.capacity(frame)
    assert found.links.share_at_capacity.tolist() == [0, 0, 0]
    assert found.sentence == (
        "Of 6 windows of 1 s in 3 tests, each of one link, none was at capacity (95 % of the link's rate or more). "
        "The fullest window, from a to b, carried 75.0 % of the rate. Queues dropped 0 of 4,050 packets, and the "
        "longest backlog at the end of a window was 0 ms."
    )
    finding = found.finding("never-at-capacity")
    assert (finding.estimate, finding.unit, finding.n) == (0.75, "fraction", 3)


def test_one_full_window_or_one_dropped_packet_is_at_capacity():
    full = utilisation.capacity(samples([0, 960_000, 1_000_000]))
    assert "1 was at capacity (95 %" in full.sentence
    assert full.links.share_at_capacity[0] == 0.5
    assert "none was at capacity (95 %" in utilisation.capacity(samples([0, 940_000, 1_000_000])).sentence
    dropped = utilisation.capacity(samples([0, 100_000], packets_queue_dropped=[0, 3]))
    assert "dropped 3 of 100 packets" in dropped.sentence


def test_backlogs_are_told_in_time():
    frame = samples([0] * 6, bytes_backlog=[0, 5000, 20_000, 1000, 0, 7000])
    row = utilisation.capacity(frame).links.iloc[0]
    assert row.max_backlog_ms == 20.0 and row.longest_backlog_s == 2.0
    assert utilisation.capacity(samples([0, 0])).links.longest_backlog_s[0] == 0


def intervals(omitted=(False, False)):
    context = {"run_id": "r", "test_id": "t1", "attempt": 1, "from_region": "a", "to_region": "b"}
    context |= {"source_file": "i.json", "direction": "forward"}
    transfer = context | {"started_at_utc": "1970-01-01T00:16:40Z"}
    rows = [
        context | {"stream": stream, "start_s": float(n), "end_s": n + 1.0, "bytes": 250_000, "omitted": is_omitted}
        for n, is_omitted in enumerate(omitted)
        for stream in (0, 1)
    ]
    if omitted[0]:
        rows = [row | ({} if row["omitted"] else {"start_s": 0.0, "end_s": 1.0}) for row in rows]
    return tables.from_rows("transfers", [transfer]), tables.from_rows("intervals", rows)


def test_background_sums_streams_in_unix_time():
    found = utilisation.background(*intervals())
    assert found[["start_s", "end_s", "background_bps"]].values.tolist() == [[1000, 1001, 4e6], [1001, 1002, 4e6]]


def test_background_counts_on_after_the_omitted_seconds():
    found = utilisation.background(*intervals((True, False)))
    assert found.start_s.tolist() == [1000, 1001]


def metrics(values, metric="n_total", *, subject="", cumulative=True, node_id=1, **more):
    row = {"run_id": "r", "test_id": "t1", "attempt": 1, "source_file": "x", "source": "prometheus", "host": "b/0"}
    row |= {"subject": subject, "metric": metric, "unit": "", "cumulative": cumulative, "node_id": node_id} | more
    return [
        row | {"at_utc": pd.Timestamp(1000 + at, unit="s", tz="UTC"), "value": float(value)} for at, value in values
    ]


def test_rates_span_missing_samples():
    found = counter_rates(tables.from_rows("metrics", metrics([(0, 5), (5, 15), (20, 45)])))
    assert found.rate.tolist() == [2.0, 2.0] and found.interval_s.tolist() == [5, 15]


def test_a_counter_that_falls_has_begun_anew():
    found = counter_rates(tables.from_rows("metrics", metrics([(0, 50), (5, 20), (10, 30)])))
    assert found.increase.tolist() == [20, 10] and found.restarted.tolist() == [True, False]


def test_a_restart_shows_even_where_the_counter_has_overtaken_itself():
    rows = metrics([(0, 50), (5, 80)]) + metrics([(0, 900), (5, 1003)], STARTED, cumulative=False)
    found = counter_rates(tables.from_rows("metrics", rows))
    assert found.increase.tolist() == [80] and found.restarted.tolist() == [True]


def test_levels_and_other_brokers_have_no_part_in_a_rate():
    rows = metrics([(0, 1)], "level", cumulative=False) + metrics([(0, 5)]) + metrics([(5, 50)], node_id=2)
    assert counter_rates(tables.from_rows("metrics", rows)).empty
    assert counter_rates(tables.from_rows("metrics", [])).empty


def cpu(*rows, names=("usr", "sys"), host="a/0", test_id="t1"):
    """Samples of (user, system, iowait, steal) of all processors, and one processor twice as busy."""
    out = []
    for n, (user, system, iowait, steal) in enumerate(rows):
        for subject, factor in (("cpu all", 1), ("cpu 0", 2)):
            percent = {names[0]: user * factor, names[1]: system * factor, "iowait": iowait, "steal": steal}
            percent["idle"] = 100 - sum(percent.values())
            for metric, value in percent.items():
                about = {"source": "sysstat", "host": host, "node_id": None, "test_id": test_id, "unit": "%"}
                out += metrics([(n, value)], metric, subject=subject, cumulative=False, **about)
    return tables.from_rows("metrics", out)


@pytest.mark.parametrize("names", [("usr", "sys"), ("user", "system")])
def test_busy_is_neither_idle_nor_waiting_for_a_disk(names):
    row = processors.processor_use(cpu((20, 10, 30, 2), (30, 10, 0, 0), names=names)).iloc[0]
    assert (row.busy_percent, row.iowait_percent) == (36, 15)
