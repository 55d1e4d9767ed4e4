"""
Measure what a further day of a campaign costs: `python benchmarks/campaign_days.py`.

Adds the committed recording of a survey (56 pairs, 112 raw files) to a campaign as the run of one day after another,
and reads the campaign after each. The last days must take at most 1.5 times as long as the first ones. At the end, it
compares DuckDB and pandas by a query over all days.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from statistics import median

from measured import record

ROOT = Path(__file__).resolve().parents[1]
QUERY = "select from_region, to_region, median(rtt_ms) as rtt_ms from echoes group by all order by all"
MOST = 1.5  # times the cost of an early day: what the list of days may add, and noise


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--days", type=int, default=366, help="days of the campaign (default: %(default)s)")
    days = options.parse_args().days
    [recording] = (ROOT / "data" / "samples" / "raw" / "survey-quick").iterdir()
    with tempfile.TemporaryDirectory(prefix="wanbench-days-") as folder:
        os.environ["WANBENCH_DATA"] = folder
        from wanbench.read.ingest import tabulate_campaign

        took = []
        for day in range(days):
            add_day(Path(folder), recording, date(2026, 1, 1) + timedelta(day))
            start = time.perf_counter()
            tables = tabulate_campaign("daily")
            took.append(time.perf_counter() - start)
        start = time.perf_counter()
        by_query = tables.query(QUERY)
        query_s = time.perf_counter() - start
        start = time.perf_counter()
        echoes = tables["echoes"]
        by_pandas = echoes.groupby(["from_region", "to_region"]).rtt_ms.median()
        pandas_s = time.perf_counter() - start
        if abs(by_query.rtt_ms.to_numpy() - by_pandas.to_numpy()).max() > 1e-9:
            sys.exit("DuckDB and pandas differ")
    first, last = median(took[1:6]), median(took[-5:])
    print(f"days 2 to 6: {first:.3f} s each; the last five of {days}: {last:.3f} s each, {last / first:.2f} times")
    print(f"median RTT of each pair over {len(echoes):,} echoes: DuckDB {query_s:.2f} s, pandas {pandas_s:.2f} s")
    record(f"reading day {days} of a campaign of 56 pairs", last, "s", bound="1.5 x day 2", peer="day 2", of_peer=first)
    record(f"a median per pair over {days} days", query_s, "s", peer="all into pandas", of_peer=pandas_s)
    return 0 if last <= MOST * first else 1


def add_day(data: Path, recording: Path, day: date) -> None:
    """Add the recording as the run of one day; its files are hard links to one copy."""
    folder = data / "raw" / "daily" / f"{day:%Y%m%d}T000000Z-00000000"
    events = [json.loads(line) for line in (recording / "journal.jsonl").read_text().splitlines()]
    events[0] |= {"campaign": "daily", "run_id": folder.name}
    if not (data / "copy").exists():
        shutil.copytree(recording, data / "copy", ignore=shutil.ignore_patterns("journal.jsonl", "manifest.json"))
    shutil.copytree(data / "copy", folder, copy_function=os.link)
    (folder / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


if __name__ == "__main__":
    sys.exit(main())
