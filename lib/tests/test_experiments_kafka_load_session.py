"""One run of a load, with made-up tools on this machine: what is kept, and which time counts."""

import pytest
from made_up_tools import COUNTED, ENDS, FOR_EVER, READS_ON, STOPPED, Here, MadeUp, recorded, run
from patience import comes_about

from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.experiments.kafka_tools import CONSUMER, PRODUCER
from wanbench.measure.experiments.load_settings import records
from wanbench.read.ingest import kafka_load as reader


def test_a_load_that_is_stopped_keeps_its_windows_and_says_what_is_missing(tmp_path):
    files = run(STOPPED, MadeUp(FOR_EVER), tmp_path)
    assert [file.path.removeprefix("kafka_load/s.") for file in files] == [
        "producer-0.txt", "producer-0.lines.json",
        "producer-1.txt", "producer-1.lines.json",
        "consumer-0-0.txt", "consumer-0-0.lines.json",
        "batches.json", "times.json",
    ]  # fmt: skip
    (times,) = reader.read_times(tmp_path / "kafka_load/s.times.json")["loads"].to_dict("records")
    assert times["counts_from_s"] == pytest.approx(times["all_sending_at_s"] + 0.5)
    assert times["counts_until_s"] == times["asked_to_stop_at_s"] >= times["counts_from_s"] + 0.9
    assert "summary lines and metrics of the producers" in times["missing"]
    lines = recorded(tmp_path, "producer-1.lines")
    printed = (tmp_path / "kafka_load/s.producer-1.txt").read_bytes().splitlines()
    assert len(lines["lines"]) == len(printed) > 10
    assert lines["started_at_s"] <= lines["lines"][0] <= times["all_sending_at_s"]
    assert lines["lines"] == sorted(lines["lines"])
    assert recorded(tmp_path, "batches") == {"left_out": "nobody may look into its logs"}


def test_a_load_by_count_ends_by_itself(tmp_path):
    run(COUNTED, MadeUp(ENDS), tmp_path)
    times = recorded(tmp_path, "times")
    assert times["asked_to_stop_at_s"] is None
    assert times["missing"] == []
    lines = [recorded(tmp_path, f"producer-{n}.lines")["lines"] for n in range(2)]
    assert times["counts_from_s"] == max(each[0] for each in lines)
    assert times["counts_until_s"] == min(each[-1] for each in lines)


def test_with_a_warmup_the_time_counts_from_the_steady_state(tmp_path):
    source = (
        "print('Warmup first 5 records. Steady state results will print after the complete test summary.')\n"
        "window(5)\ntime.sleep(0.3)\nprint('In steady state.')\nwindow()\ntime.sleep(0.3)\nsummary(25)\n"
        "summary(20, ' steady state')"
    )
    run(KafkaLoad(records=20, warmup_records=5, duration_s=None), MadeUp(source), tmp_path)
    times, lines = recorded(tmp_path, "times"), recorded(tmp_path, "producer-0.lines")["lines"]
    assert times["all_sending_at_s"] == lines[1] < times["counts_from_s"] == lines[2]
    assert times["counts_until_s"] == lines[-1]


def test_a_load_too_short_for_its_warmup_has_no_time_that_counts(tmp_path):
    run(KafkaLoad(records=20, warmup_records=5, duration_s=None, consumer_groups=0), MadeUp("summary()"), tmp_path)
    times = recorded(tmp_path, "times")
    assert times["counts_from_s"] is times["counts_until_s"] is None
    assert times["missing"] == ["a time in which all producers sent after their warm-up"]


def test_producers_and_consumers_take_hosts_topics_and_groups_by_turns(tmp_path):
    load = KafkaLoad(topics=2, producers=4, consumer_groups=3, records=20, duration_s=None)
    cluster = MadeUp(ENDS, "pass")
    run(load, cluster, tmp_path, hosts=2)

    def word(arguments, option):
        return arguments[arguments.index(option) + 1]

    producers = [(host, word(arguments, "--topic")) for host, kind, arguments in cluster.commands if kind == PRODUCER]
    assert producers == [(f"here/{n % 2}", f"load-s-{n % 2}") for n in range(4)]
    groups = [
        (word(arguments, "--topic"), word(arguments, "--group").rpartition("-")[0], word(arguments, "--num-records"))
        for _, kind, arguments in cluster.commands
        if kind == CONSUMER
    ]
    assert groups == [(f"load-s-{n // 3}", f"load-s-{n // 3}-group-{n}", "40") for n in range(6)]
    assert (tmp_path / "kafka_load/s.consumer-5-5.txt").exists()


def test_topics_keep_what_is_counted_unless_told_otherwise(tmp_path):
    cluster = MadeUp(ENDS)
    run(KafkaLoad(records=20, duration_s=None, topic_settings={"retention.ms": 5000}), cluster, tmp_path)
    assert cluster.settings == {
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "5000",
        "retention.bytes": "-1",
    }


def test_made_records_are_put_on_a_host_once(tmp_path):
    load = KafkaLoad(producers=2, records=20, duration_s=None, payload="json", record_bytes=200, consumer_groups=0)
    source = "path = sys.argv[sys.argv.index('--payload-file') + 1]\nprint(open(path).read(), end='')\n" + ENDS
    cluster, host = MadeUp(source), Here(tmp_path)
    host.cluster = cluster
    for stem in ("s", "t"):
        load.run(host, host, tmp_path, stem)
        printed = (tmp_path / f"kafka_load/{stem}.producer-1.txt").read_bytes()
        assert printed.startswith(records("json", 200, seed=0))
    assert recorded(tmp_path, "times")["payload"]["records"] == 10_000
    moved = [process.command[-1] for process in host.started if process.command[0] == "mv"]
    assert len([path for path in moved if "/records-" in path]) == 1


def test_producers_that_do_not_send_all_in_time_are_a_result_with_how_far_they_fell_behind(tmp_path, monkeypatch):
    def once_both_have_printed(load):
        files = [tmp_path / f"scratch-here-0/s.producer-{n}.lines" for n in range(2)]
        assert comes_about(lambda: all(f.exists() and len(f.read_text().split()) > 3 for f in files))
        return 0.0

    monkeypatch.setattr(KafkaLoad, "time_limit_s", once_both_have_printed)
    load = KafkaLoad(producers=2, target_records_per_s=400, duration_s=60, consumer_groups=0)
    run(load, MadeUp(FOR_EVER), tmp_path)
    (row,) = reader.read_times(tmp_path / "kafka_load/s.times.json")["loads"].to_dict("records")
    assert row["unfinished"] == (
        "2 of 2 producers had not sent all their 24,000 records after 0 s and were stopped: producer-0, producer-1"
    )
    assert row["counts_from_s"] < row["counts_until_s"] == row["asked_to_stop_at_s"]
    for n in range(2):
        found = reader.read(tmp_path / f"kafka_load/s.producer-{n}.txt")
        windows = found["producer_windows"]
        assert len(windows) >= 3 and windows.printed_at_s.notna().all()
        # A window of 10 records at 9.9 records/s lasts 1.0101 s, and 10 records at 400 a second take 0.025 s.
        each_s = 10 / 9.9 - 10 / 400
        assert windows.behind_s.tolist() == pytest.approx([each_s * (k + 1) for k in range(len(windows))])
        assert "stopped" in found["producers"].error[0]


def test_consumers_can_be_stopped_with_the_producers(tmp_path):
    load = KafkaLoad(duration_s=1, drain=False)
    run(load, MadeUp(FOR_EVER, READS_ON), tmp_path)
    assert any("consumers" in each for each in recorded(tmp_path, "times")["missing"])
