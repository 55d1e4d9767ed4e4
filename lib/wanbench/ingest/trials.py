"""The settings of a run's trials, from its plan: table `trials`."""

from __future__ import annotations

import pandas as pd

from .. import tables
from ..errors import ParameterError, RawDataError
from ..runs import Run

TRIAL = "kafka_trial"
LINK = ("delay_ms", "jitter_ms", "loss", "rate_bps")
LOAD = (
    "topics", "partitions", "replication", "producers", "consumer_groups", "consumers", "acks", "batch_bytes",
    "linger_ms", "compression", "record_bytes", "target_records_per_s", "duration_s",
)  # fmt: skip


def trials(run: Run) -> dict[str, pd.DataFrame]:
    """
    Table trials of a run, by name; no table if the run's plan has no trials of Kafka.

    Raises
    ------
    RawDataError
        If the plan in the journal is malformed.
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
    except (AttributeError, KeyError, TypeError, ParameterError) as error:
        raise RawDataError(run.folder / "journal.jsonl", 1, error, "a plan of trials") from error


def of_plan(run: Run, name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """
    A table with the setting and the block that the run's plan has for each test.

    Raises
    ------
    RawDataError
        If the plan in the journal is malformed.
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


def _row(run_id, test, experiment):
    link, load = experiment.get("link") or {}, experiment["load"]
    background = experiment.get("background") or {}
    row = {name: test[name] for name in ("block", "setting", "from_region", "to_region")}
    row |= {"run_id": run_id, "test_id": test["id"], "background_bps": background.get("rate_bps")}
    row |= {name: link.get(name) for name in LINK} | {name: load.get(name) for name in LOAD}
    return row | {"acks": None if load.get("acks") is None else str(load["acks"])}
