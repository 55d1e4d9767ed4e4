"""
Measure the smallest study, as a process of its own: `python -m torture.study CAMPAIGN [SEED]`.

Two regions ping each other and send by iperf3, in both directions. The status is 0 if every test was done, 2 if an
error ended it, 130 after Ctrl-C and 143 after SIGTERM. The last line on standard error says what happened.
"""

import sys


def main(name: str, seed: str = "1") -> int:
    """Measure or resume the study in a campaign; return the status."""
    try:
        return _measured(name, seed)
    except KeyboardInterrupt as stop:
        print(f"torture: interrupted. {stop}", file=sys.stderr)
        return 130


def _measured(name, seed):
    from wanbench.errors import WanbenchError
    from wanbench.measure import campaign, experiments, labs, plan

    regions = ["aws:eu-west-1", "aws:us-east-1"]
    links = labs.geodesic_links(regions, path_inflation=1.5, rate_bps=20e6)
    measuring = [experiments.Ping(count=5, interval_s=0.05), experiments.Iperf3(duration_s=1)]
    tests = plan.make_plan(regions=regions, experiments=measuring, rate_bps=20e6, seed=int(seed))
    try:
        run = campaign.run(tests, links, lab="local", campaign=name)
    except (WanbenchError, OSError) as error:
        print(f"torture: {error}", file=sys.stderr)
        return 2
    print(run, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
