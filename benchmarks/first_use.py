"""Measure how long a user waits for a method's first use and for a replayed page: `python benchmarks/first_use.py`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from measured import record

ROOT = Path(__file__).resolve().parents[1]
TURNS = 5


def main() -> int:
    """Time the first use of a method and the import of pandas in turn, then a page; return 1 if a bound is exceeded."""
    commands = {
        "method": [sys.executable, "-c", "import wanbench; wanbench.methods.fit_rtt"],
        "pandas": [sys.executable, "-c", "import pandas"],
    }
    took = {name: [] for name in commands}
    for _ in range(TURNS):
        for name, command in commands.items():
            took[name].append(seconds(command))
    method_s, pandas_s = median(took["method"]), median(took["pandas"])
    report_s = seconds([str(Path(sys.executable).with_name("wanbench")), "report", "--replay", "--again", "02"])
    print(
        f"first use of a method {method_s:.2f} s, import of pandas {pandas_s:.2f} s, report of page 02 {report_s:.1f} s"
    )
    record("first use of a method", method_s, "s", bound="at most 1", peer="import of pandas", of_peer=pandas_s)
    record("`wanbench report --replay --again 02`", report_s, "s", bound="at most 10 on an idle machine")
    return 0 if method_s <= 1 and report_s <= 10 else 1


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
