"""Read output of the experiment `route`, which is mtr's JSON, into table routes; an empty file has no row."""

from hashlib import sha256
from pathlib import Path

import pandas as pd

from .json_values import read_objects
from .mtr import WANTED
from .rows import fitting


def read(path: Path) -> dict[str, pd.DataFrame]:
    """Read table routes; raise RawDataError if the file is neither empty nor mtr's JSON with hops."""
    if not path.stat().st_size:
        return {}
    rows = []
    for top in read_objects(path, WANTED):
        hubs = top.members("report").list("hubs")
        hops = [host for hub in hubs if (host := hub.text("host"))]
        if not hops or len(hops) < len(hubs):
            top.refuse(", ".join(map(str, top.values)), f"{WANTED} with report.hubs, each with a host")
        rows.append({"route": sha256(" ".join(hops).encode()).hexdigest()[:12], "n_hops": len(hops)})
        rows[-1]["hops"] = " ".join(hops)
    return {"routes": fitting(path, "routes", rows)}
