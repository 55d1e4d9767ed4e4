"""`python -m wanbench.validity`: run the studies and write their tables to data/validity."""

from __future__ import annotations

import argparse
import sys
import time

from . import study


def main(words: list[str] | None = None) -> int:
    """Run the studies that were asked for, one after the other; a line per setting on standard error."""
    found = study.studies()
    parser = argparse.ArgumentParser(prog="python -m wanbench.validity", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(found), metavar="SUBJECT", help=", ".join(found))
    parser.add_argument("--datasets", type=int, help="per setting (default: the study's own number)")
    parser.add_argument("--seed", type=int, default=0, help="of the first data set (default: 0)")
    parser.add_argument("--processes", type=int, default=1, help="at once (default: 1)")
    parser.add_argument("--into", help="folder of the tables (default: data/validity)")
    given = parser.parse_args(words)
    start = time.monotonic()
    for subject in given.only or found:
        table = study.run(
            found[subject],
            datasets=given.datasets,
            seed=given.seed,
            processes=given.processes,
            report=lambda line: print(
                f"{time.monotonic() - start:7.0f} s  {line}", file=sys.stderr, flush=True
            ),
        )
        print(study.write(table, subject, given.into))
    return 0


if __name__ == "__main__":
    sys.exit(main())
