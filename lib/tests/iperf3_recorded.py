"""A recorded document of iperf3, with one member changed, and the check of what was read as whole tables."""

import copy
import json
from pathlib import Path

import pandas as pd

from wanbench import tables

FOLDER = Path(__file__).parent / "samples" / "iperf3"
RECORDED = json.loads((FOLDER / "v3.12_tcp.json").read_text())


def as_tables(transfers, intervals):
    """Rows (or the core columns) as whole tables, checked."""
    for name, core in (("transfers", transfers), ("intervals", intervals)):
        rows = core if isinstance(core, list) else core.to_dict("records")
        known = [{k: v for k, v in row.items() if not pd.isna(v)} | {"source_file": "a.json"} for row in rows]
        tables.from_rows(name, known)


def changed(path, value):
    """The recorded document with one member changed; `path` is its place."""
    document = copy.deepcopy(RECORDED)
    parent = document
    for name in path[:-1]:
        parent = parent[name]
    if value is KeyError:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return json.dumps(document).encode()
