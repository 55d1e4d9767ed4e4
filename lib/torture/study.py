"""
Measure a small study, as a process of its own: `python -m torture.study CAMPAIGN [STUDY [INVENTORY]]`.

- `survey`: two regions ping each other and send by iperf3, in both directions; with an inventory, on its hosts by SSH.
- `load`: producers load a broker, twice.
- `brokers`: three brokers in three regions; one region is cut off while clients send numbered records, as on page 07;
  then records are sent on a schedule, as on page 08.
- `mirror`: MirrorMaker copies from one cluster to another, as on page 16; the first is cut off; then records are sent
  on a schedule.

The status is 0 if every test was done, 2 if an error ended it, 130 after Ctrl-C, 143 after SIGTERM and 129 after
SIGHUP. The last line on standard error says what happened.
"""

import signal
import sys

ECHOES = 5
REGIONS = ("aws:eu-west-1", "aws:us-east-1", "gcp:us-west1")
# Timeouts as short as Kafka allows without false alarms on a busy machine, so that a cluster recovers in seconds.
BROKER_MS = {
    "broker.session.timeout.ms": 6000, "broker.heartbeat.interval.ms": 1000, "group.min.session.timeout.ms": 3000
}  # fmt: skip
CLIENT_MS = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, "socket.timeout.ms": 6000}


def main(name: str, study: str = "survey", inventory: str = "") -> int:
    """Measure or resume a study in a campaign; return the status."""
    try:
        status, said = _ended(name, study, inventory)
    except KeyboardInterrupt as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status, said = 130, f"interrupted. {stop or 'Nothing was measured; the next call starts.'}"
    except SystemExit as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status, said = int(stop.code or 0), "terminated. The measurements are kept; the next call continues."
    print(f"torture: {said}", file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the interpreter, which ends now, would print a traceback
    return status


def _ended(*asked):
    from wanbench.errors import WanbenchError

    try:
        run = measured(*asked)
    except (WanbenchError, OSError) as error:
        return 2, str(error)
    done = run.tests().query("outcome == 'done'").test_id.nunique()
    return 0, f"{done} of {len(run.plan['tests'])} tests are done."


def links(n_regions: int = 2):
    """Return the links between the first regions."""
    from wanbench.measure import labs

    return labs.geodesic_links(REGIONS[:n_regions], path_inflation=1.5, rate_bps=20e6)


def measured(name: str, study: str = "survey", inventory: str = ""):
    """Return the run of a study, which is measured or resumed."""
    from wanbench.measure import campaign, experiments, plan

    one, two, three = REGIONS
    if study == "survey":
        measuring = [experiments.Ping(count=ECHOES, interval_s=0.05), experiments.Iperf3(duration_s=1)]
        tests = plan.make_plan(regions=[one, two], experiments=measuring, rate_bps=20e6)
        where = {"lab": "ssh", "lab_options": {"inventory": inventory}} if inventory else {"lab": "local"}
        return campaign.run(tests, links(), campaign=name, **where)
    cluster: dict = {"profile": "functional", "heap_mb": 256, "metrics": False, "settings": BROKER_MS}
    if study == "load":
        trials, brokers = {"first": _load(), "second": _load()}, [two]
    elif study == "brokers":
        trials, brokers = (
            {"cut": experiments.KafkaFault("cut", three, fault_s=2, **_traffic()), "open": _open()},
            REGIONS,
        )
    else:
        from wanbench.pages.stretch_or_mirror.design import MirrorFault

        fault = MirrorFault("cut", one, fault_s=3, failover_s=1, replication=1, **_traffic())
        trials, brokers = {"cut": fault, "open": _open(replication=1, cluster="mirrored")}, [one]
        cluster["mirrored"] = {"source": [one], "target": [two]}
    tests = plan.make_trials(
        [plan.Trial(setting, (each,)) for setting, each in trials.items()],
        from_region=one, to_region=two, more_regions=[three] if study == "brokers" else [],
    )  # fmt: skip
    between = links(3 if study == "brokers" else 2)
    return campaign.run(tests, between, lab="local", campaign=name, brokers=brokers, cluster=cluster)


def _load():
    from wanbench.measure import experiments

    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    load = experiments.KafkaLoad(
        producers=1, partitions=1, replication=1, duration_s=3, warmup_s=1, drain=False, start_timeout_s=120, jvm=quick
    )
    return experiments.KafkaTrial(load)


def _traffic():
    return {"before_s": 1, "quiet_s": 0.5, "records_per_s": 20, "partitions": 3, "client_settings": CLIENT_MS}


def _open(replication: int = 3, **where):
    from wanbench.measure import experiments

    load = experiments.KafkaOpenLoop(
        100, groups=1, partitions=3, replication=replication, duration_s=2, warmup_s=1, drain_s=5
    )
    return experiments.KafkaTrial(load, **where)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
