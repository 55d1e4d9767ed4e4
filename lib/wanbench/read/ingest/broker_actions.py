"""Read output of `wanbench.measure.experiments.broker_actions` into tables broker_actions and cluster_samples."""

import json
from pathlib import Path

import pandas as pd

from .json_values import Members
from .programs import LATEST_S, SAMPLED, open_document, programs
from .rows import Row, fitting

_TIMES = ("asked_at_s", "began_at_s", "in_force_at_s", "done_at_s", "healthy_at_s")
_LASTING = ("kill", "slow", "disk", "link")


def read(path: str | Path) -> dict[str, pd.DataFrame]:
    """
    Read <stem>.actions.json and the files that it names.

    Raise RawDataError if one of them is missing, damaged or in another format.
    """
    path = Path(path)
    top = open_document(path, "broker actions in JSON")
    rolling = top.members("settings").flag("rolling") or False
    actions = [_row(one) | {"rolling": rolling} for one in top.list("actions")]
    samples = [row for program in programs(top, path) for row in program.cluster_samples()]
    return {
        "broker_actions": fitting(path, "broker_actions", actions),
        "cluster_samples": fitting(path, "cluster_samples", pd.DataFrame(samples, columns=SAMPLED, dtype=object)),
    }


def _row(one: Members) -> Row:
    kind = one.text("kind") or one.refuse(str(one.values)[:80], "the kind of an action")
    return {
        **{name: one.count(name) for name in ("number", "node_id", "leaders_moved")},
        **{name: one.number(name, most=LATEST_S) for name in _TIMES},
        "kind": kind,
        "for_s": one.number("for_s") if kind in _LASTING else None,
        "detail": json.dumps(one.members("how").values, sort_keys=True),
        "error": one.text("error"),
    }
