"""A stranger's package adds an importer and a plausibility rule, without a line changed here."""

import os
import subprocess
import sys

STRANGER = """
import pandas as pd

from wanbench import tables
from wanbench.read.plausibility import Rule


def read(path, rtt_ms):
    ping = dict.fromkeys(tables.table("pings").names)
    ping |= {"source_file": path, "from_region": "aws:eu-west-1", "to_region": "aws:us-east-1", "mean_rtt_ms": rtt_ms}
    return {"pings": tables.from_rows("pings", [ping])}


def check(made):
    return [RULE.flag("pings", "table", "suspect", "rows", "made up", value=len(made["pings"]), bound=0)]


RULE = Rule("strange", "Nothing is measured.", "no row", "made up", check)
"""
PROGRAM = """
from wanbench.read import importers, plausibility
made = importers.read("strange", "a.txt", rtt_ms=80.0)
print(*made["flags"].rule, "strange" in plausibility.RULES, len(made["unread"]))
"""


def test_a_package_adds_an_importer_and_a_rule(tmp_path):
    (tmp_path / "stranger.py").write_text(STRANGER)
    metadata = tmp_path / "stranger-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[wanbench.importers]\nstrange = stranger:read\n[wanbench.rules]\nstrange = stranger:RULE\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["strange", "True", "0"], done.stderr
