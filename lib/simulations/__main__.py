"""`python -m simulations`: run the simulations and write their tables to data/validity."""

from __future__ import annotations

import argparse
import sys
import time

from . import simulation


def main(arguments: list[str] | None = None) -> int:
    """Run the requested simulations in turn; print a line per setting on standard error."""
    simulations = simulation.simulations()
    parser = argparse.ArgumentParser(prog="python -m simulations", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=sorted(simulations), metavar="SUBJECT", help=", ".join(simulations)
    )
    parser.add_argument("--datasets", type=int, help="data sets per setting (default: the simulation's own number)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first data set (default: 0)")
    parser.add_argument("--processes", type=int, default=1, help="concurrent processes (default: 1)")
    parser.add_argument("--into", help="folder of the tables (default: data/validity)")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    for subject in options.only or simulations:
        table = simulation.run(
            simulations[subject],
            datasets=options.datasets,
            seed=options.seed,
            processes=options.processes,
            report=lambda line: print(f"{time.monotonic() - start:7.0f} s  {line}", file=sys.stderr, flush=True),
        )
        print(simulation.write(table, subject, options.into))
    return 0


if __name__ == "__main__":
    sys.exit(main())
