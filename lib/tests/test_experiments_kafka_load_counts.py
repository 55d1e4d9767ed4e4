"""Which part of a load's time counts."""

from types import SimpleNamespace

import pytest
from made_up_tools import COUNTED

from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.experiments.kafka_load_session import counted_period


@pytest.mark.parametrize("stopped, until_s", [([], 12.0), ([1], 12.0), ([0], 16.0), ([0, 1], 20.0)])
def test_time_counts_until_the_first_producer_ended_or_was_stopped(stopped, until_s):
    tools = [
        SimpleNamespace(line_times=lambda last=last: [(1.0, b"9.9 records/sec (0"), (last, b"9.9 records/sec (0")])
        for last in (12.0, 16.0)
    ]
    found = counted_period(COUNTED, tools, [tools[n] for n in stopped], 20.0 if stopped else None)
    assert found["counts_until_s"] == until_s


def test_of_producers_that_send_for_longer_than_was_asked_no_more_time_counts(tmp_path):
    tool = SimpleNamespace(line_times=lambda: [(at_s, b"9.9 records/sec (0") for at_s in (1.0, 50.0)])
    load = KafkaLoad(target_records_per_s=400, duration_s=5)
    assert counted_period(load, [tool], [], None)["counts_until_s"] == 6.0
    assert counted_period(load, [tool], [tool], 84.0)["counts_until_s"] == 6.0
