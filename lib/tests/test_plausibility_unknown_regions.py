"""Tables of loose files have no regions: every rule runs over them, and judges no pair that it does not know."""

from pathlib import Path

import pandas as pd
import pytest
from simulations import planted_faults

from wanbench import tables as declared
from wanbench.read import ingest, plausibility
from wanbench.read.ingest.readers import loose_readers

SAMPLES = Path(__file__).parent / "samples"
FOLDERS = {"kafka_load": "kafka_perf", "broker_metrics": "broker_metrics"}
OF_PAIRS = {"coordinates", "light", "half", "unit of RTT", "copies", "mirror", "copied day", "two units", "limiter"}
"""Rules that compare a row with its place, or with other rows of its pair or sender."""
END_SETS = (["from_region", "to_region"], ["from_region"], ["to_region"])
MEASURED = ("pings", "echoes", "transfers")


def without(found, ends, every=1):
    """The tables with null in these columns of every row, or of every second one."""
    made = dict(found)
    for name in MEASURED:
        if name in found:
            frame = found[name].copy()
            frame.loc[frame.index[::every], ends] = None
            made[name] = declared.validate(name, frame)
    return made


@pytest.mark.parametrize("tool", sorted(loose_readers()))
def test_files_of_every_tool_can_be_checked(tool):
    folder = SAMPLES / FOLDERS.get(tool, tool)
    paths = sorted(path for path in folder.glob("*") if path.suffix != ".csv") if folder.exists() else []
    found = ingest.read_files(paths, tool)
    assert set(plausibility.check(found).rule) <= {"summary", "bytes"}


@pytest.mark.parametrize(
    ("fault", "ends"), [(fault, END_SETS[number % len(END_SETS)]) for number, fault in enumerate(planted_faults.FAULTS)]
)
def test_rules_of_pairs_say_nothing_of_unknown_ones(fault, ends):
    planted = planted_faults.plant(fault, 3, n_regions=9)
    flags = plausibility.check(without(planted.tables, ends))
    assert not set(flags.rule) & (OF_PAIRS | {"link"})
    judged_by_itself = planted.rule in ("bytes", "block", "summary")
    assert planted.named(flags) == judged_by_itself


@pytest.mark.parametrize("fault", ["a rate limiter at a round number", "a day copied", "RTT in seconds"])
def test_rows_without_regions_do_not_hide_the_others(fault):
    planted = planted_faults.plant(fault, 3, n_regions=9)
    half = without(planted.tables, ["from_region", "to_region"], every=2)
    flags = plausibility.check(half)
    assert planted.named(flags)
    rows = flags[flags.scope == "row"]
    assert rows[["from_region", "to_region"]].notna().all(axis=None)


def test_null_in_any_other_column_stops_no_rule():
    for fault in ("echoes timed too short", "MiB for MB", "from and to exchanged"):
        found = planted_faults.plant(fault, 3, n_regions=5).tables
        for name in set(found) & set(MEASURED):
            filled = found[name].columns[found[name].notna().any()]  # the others are null already
            for column in (each for each in declared.table(name).columns if each.nullable and each.name in filled):
                nulls = pd.Series(None, index=found[name].index, dtype=column.dtype)
                plausibility.check(found | {name: declared.validate(name, found[name].assign(**{column.name: nulls}))})
