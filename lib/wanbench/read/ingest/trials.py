"""Read the settings of a run's trials from its plan into table trials."""

import json
import re
from typing import Any

import pandas as pd

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.runs import Run

TRIAL = "kafka_trial"
LINK = ("delay_ms", "jitter_ms", "loss", "rate_bps")
LOAD = (
    "topics", "partitions", "replication", "producers", "consumer_groups", "consumers", "acks", "batch_bytes",
    "linger_ms", "compression", "record_bytes", "target_records_per_s", "duration_s", "payload", "max_in_flight",
    "client_rack",
)  # fmt: skip


def trials(run: Run) -> dict[str, pd.DataFrame]:
    """
    Return {"trials": the run's table trials}, or {} if the plan has no trials; raise RawDataError for an invalid plan.
    """
    planned = run.plan.get("tests")
    try:
        rows = [
            _row(run.run_id, test, experiment)
            for test in (planned if isinstance(planned, list) else ())
            for experiment in test.get("experiments", ())
            if experiment.get("name") == TRIAL
        ]
        return {"trials": tables.from_rows("trials", rows)} if rows else {}
    except (AttributeError, KeyError, TypeError, ValueError, ParameterError) as error:
        raise RawDataError(run.folder / "journal.jsonl", 1, error, "a plan of trials") from error


def of_plan(run: Run, name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """
    Add columns setting and block from the run's plan to table `name` (`frame`), whose rows have a test_id; raise
    RawDataError for an invalid plan.
    """
    try:
        planned = {test["id"]: test for test in run.plan.get("tests") or ()}
        columns = {
            column: [planned.get(test_id, {}).get(column) for test_id in frame.test_id]
            for column in ("setting", "block")
        }
        return tables.validate(name, frame.assign(**columns))
    except (AttributeError, KeyError, TypeError, ParameterError) as error:
        raise RawDataError(run.folder / "journal.jsonl", 1, error, "a plan of trials") from error


def _row(run_id: str, test: dict[str, Any], experiment: dict[str, Any]) -> dict[str, Any]:
    link, load = experiment.get("link") or {}, _of_all_producers(experiment["load"])
    background = experiment.get("background") or {}
    row = {name: test[name] for name in ("block", "setting", "from_region", "to_region")}
    row |= {"run_id": run_id, "test_id": test["id"], "background_bps": background.get("rate_bps")}
    row |= {name: link.get(name) for name in LINK} | {name: load.get(name) for name in LOAD}
    row |= {name: experiment.get(name) for name in ("security", "gateway_bps", "system", "cluster")}
    return row | {
        "acks": None if load.get("acks") is None else str(load["acks"]),
        "client_regions": len({re.sub(r"/\d+$", "", name) for name in experiment.get("client_regions") or ()}) or None,
        **_kafka_settings(experiment, load),
    }


def _of_all_producers(load: dict[str, Any]) -> dict[str, Any]:
    """Return an open-loop load, or an OpenMessaging workload, with names of columns as keys."""
    if isinstance(load.get("workload"), dict):
        return _of_workload(load["workload"], load["driver"])
    if "rate_records_per_s" not in load:
        return load
    producers = load["topics"] * load["producers"]
    each = load["rate_records_per_s"] / producers
    return load | {"producers": producers, "consumer_groups": load["groups"], "target_records_per_s": each}


def _of_workload(workload: dict[str, Any], driver: dict[str, Any]) -> dict[str, Any]:
    """Return a workload of the OpenMessaging Benchmark, with names of columns as keys."""
    producers = workload["topics"] * workload["producersPerTopic"]
    return {
        "topics": workload["topics"],
        "partitions": workload["partitionsPerTopic"],
        "replication": driver["replicationFactor"],
        "producers": producers,
        "consumer_groups": workload["subscriptionsPerTopic"],
        "consumers": workload["consumerPerSubscription"],
        "record_bytes": workload["messageSize"],
        "target_records_per_s": workload["producerRate"] / producers or None,
        "duration_s": 60 * workload["testDurationMinutes"],
    }


def _kafka_settings(experiment: dict[str, Any], load: dict[str, Any]) -> dict[str, Any]:
    """Return columns from the settings of topics, clients and brokers, which a plan stores as pairs of text."""
    brokers = dict(experiment.get("broker_settings") or ())
    topics, producers, consumers = (dict(load.get(f"{of}_settings") or ()) for of in ("topic", "producer", "consumer"))
    numbers = {"min_insync": {**brokers, **topics}.get("min.insync.replicas")}
    for way, settings in (("send", producers), ("receive", consumers)):
        size = settings.get(f"{way}.buffer.bytes", settings.get(f"socket.{way}.buffer.bytes"))
        numbers[f"client_{way}_buffer_bytes"] = size
    texts = {"broker_settings": brokers, "broker_sizes": experiment.get("broker_sizes")}
    return {name: None if text is None else int(text) for name, text in numbers.items()} | {
        name: json.dumps(values, sort_keys=True) if values else "" for name, values in texts.items()
    }
