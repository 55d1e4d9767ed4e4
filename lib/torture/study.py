"""
Measure the smallest study, as a process of its own: `python -m torture.study CAMPAIGN [BROKERS]`.

Two regions ping each other and send by iperf3, in both directions; with brokers, a producer loads them. The status is 0
if every test was done, 2 if an error ended it, 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP. The last line
on standard error says what happened.
"""

import signal
import sys

ECHOES = 5


def main(name: str, brokers: str = "0") -> int:
    """Measure or resume the study in a campaign; return the status."""
    try:
        status, said = _ended(name, int(brokers))
    except KeyboardInterrupt as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status, said = 130, f"interrupted. {stop or 'Nothing was measured; the next call starts.'}"
    except SystemExit as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status, said = int(stop.code or 0), "terminated. The measurements are kept; the next call continues."
    print(f"torture: {said}", file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the interpreter, which ends now, would print a traceback
    return status


def _ended(name, brokers):
    from wanbench.errors import WanbenchError

    try:
        run = measured(name, brokers)
    except (WanbenchError, OSError) as error:
        return 2, str(error)
    done = run.tests().query("outcome == 'done'").test_id.nunique()
    return 0, f"{done} of {len(run.plan['tests'])} tests are done."


def measured(name: str, brokers: int = 0):
    """Return the run of the study, which is measured or resumed."""
    from wanbench.measure import campaign, experiments, labs, plan

    regions = ["aws:eu-west-1", "aws:us-east-1"]
    links = labs.geodesic_links(regions, path_inflation=1.5, rate_bps=20e6)
    if not brokers:
        measuring = [experiments.Ping(count=ECHOES, interval_s=0.05), experiments.Iperf3(duration_s=1)]
        tests = plan.make_plan(regions=regions, experiments=measuring, rate_bps=20e6)
        return campaign.run(tests, links, lab="local", campaign=name)
    load = experiments.KafkaLoad(
        producers=1, partitions=1, replication=1, duration_s=3, warmup_s=1, drain=False, start_timeout_s=120,
        jvm=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    )  # fmt: skip
    trials = [plan.Trial(one, (experiments.KafkaTrial(load),)) for one in ("first", "second")]
    tests = plan.make_trials(trials, from_region=regions[0], to_region=regions[1])
    cluster = {"profile": "functional", "heap_mb": 256}
    return campaign.run(tests, links, lab="local", campaign=name, brokers=regions[1:] * brokers, cluster=cluster)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
