"""What all tests need."""

import gc
import os
import re
import signal
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from wakeups import MAX_LATE_SHARE, Wakeups
from xdist.scheduler import LoadScopeScheduling

from wanbench.errors import WanbenchError
from wanbench.measure import kafka
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

collect_ignore = ["gcp_description.py", "gcp_stub.py"]
"""Helpers without doctests; to look for some would load the clients of Google Cloud in every process."""

sys.modules.setdefault(
    "rfc3987_syntax", None
)  # jsonschema would build its unused grammar for seconds, in every process

for name, examples in (("test", 60), ("fuzz", 10_000)):
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name == "test",  # the same examples each time, so that a change alone decides
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
settings.load_profile("test")
os.environ["WANBENCH_SHARE_MACHINE"] = "1"  # tests that measure do not wait for each other


def pytest_configure(config):
    """
    A shell that starts the tests in the background has them ignore SIGINT, and nohup SIGHUP; some tests send them, and
    what they start would ignore them as well.
    """
    if hasattr(config.option, "loadscopereorder"):
        # Groups start in the order of `GROUPS`, not by their number of tests; modules that judge time do so by theirs.
        config.option.loadscopereorder = config.option.markexpr == "timing"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@cache
def missing(mark: str) -> str | None:
    """Why tests with this mark cannot run on this machine; None if they can. Found once."""
    if mark == "lab":
        return LocalLab.unavailable()
    return LocalLab.unavailable() or kafka.unavailable()


OPEN = {}
"""What stays open for the tests of a group (see `GROUPS`), by its name."""


@contextmanager
def until_the_next_group(group: str):
    """
    A stack that is closed before a test of another group runs: three brokers without work take a fifth of a processor.
    """
    with ExitStack() as stack:
        OPEN[group] = stack
        yield stack


def pytest_runtest_setup(item):
    """Close what only tests of another group use; skip what needs a lab or a cluster where there can be none."""
    for group in [name for name in OPEN if name != _group(item.path)]:
        OPEN.pop(group).close()
    for mark in ("lab", "kafka"):
        if item.get_closest_marker(mark) and (reason := missing(mark)):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Where the machine let processes wait, a test that judges time and fails has not judged: it counts as skipped."""
    if not pyfuncitem.get_closest_marker("timing"):
        return (yield)
    wakeups = Wakeups()
    try:
        with wakeups:
            return (yield)
    except AssertionError:
        if wakeups.late_share <= MAX_LATE_SHARE:
            raise
        pytest.skip(f"nothing is known: this machine let a process wait for {wakeups.late_share:.0%} of the time")


SHARED_REGIONS = ["eu", "us", "asia"]
IDLE = {"metadata.max.idle.interval.ms": 10_000}
"""A controller without work writes twice a second, and all brokers read it: a third of what idle brokers take."""
SHARED_SETTINGS = IDLE | {
    # A broker that a busy machine lets wait for some seconds must not lose its partitions.
    "broker.session.timeout.ms": 60_000,
    # Groups of a single reader need not wait for others.
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="session")
def running_cluster():
    """
    The cluster that tests use and leave as it was: brokers 1, 2 and 3 in eu, us and asia, 10 ms apart one way, with
    metrics and mutual TLS on every connection. Tests that stop, kill or cut off a broker make a cluster of their own.
    """
    links = dict.fromkeys(permutations(SHARED_REGIONS, 2), LinkSettings(10, rate_bps=40e6))
    options = {"security": "mtls", "profile": "functional", "heap_mb": 256, "start_timeout_s": 300}
    with until_the_next_group("shared cluster") as stack:
        lab = stack.enter_context(LocalLab(SHARED_REGIONS, links))
        yield stack.enter_context(kafka.Cluster(lab, SHARED_REGIONS, settings=SHARED_SETTINGS, **options))


OWN_SETTINGS = IDLE | {
    # Faults are noticed soon, so that tests need not wait.
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "group.min.session.timeout.ms": 3000,
    "num.io.threads": 4,
}


@pytest.fixture(scope="session")
def own_cluster():
    """
    The cluster whose brokers tests may stop, kill, freeze, slow and cut off, if they bring them back: 1, 2 and 3 in eu,
    us and asia, 10 ms apart one way, two hosts in each region, plain connections.
    """
    links = dict.fromkeys(permutations(SHARED_REGIONS, 2), LinkSettings(10))
    options = {"profile": "functional", "heap_mb": 256, "start_timeout_s": 300}
    with until_the_next_group("own cluster") as stack:
        lab = stack.enter_context(LocalLab(SHARED_REGIONS, links, hosts_per_region=2))
        yield stack.enter_context(kafka.Cluster(lab, SHARED_REGIONS, settings=OWN_SETTINGS, **options))


@pytest.fixture
def shared_cluster(running_cluster):
    """The shared cluster; after the test its links are as they were, and topics that the test made are gone."""
    lab = running_cluster.lab
    links = dict(lab.links)
    yield running_cluster
    for pair, link in links.items():
        if lab.links[pair] != link:
            lab.set_link(*pair, **asdict(link))
    for topic in topics_in_logs(running_cluster):
        with suppress(WanbenchError):  # its folder may outlive a topic that is deleted
            running_cluster.delete_topic(topic)


def topics_in_logs(cluster) -> set[str]:
    """Topics, but Kafka's own, by their folders in the brokers' logs: to ask the cluster would take seconds."""
    folders = [folder.name for node in (1, 2, 3) for folder in Path(cluster.log_folder(node)).glob("*-[0-9]*")]
    return {name.rpartition("-")[0] for name in folders if not name.startswith("__") and "-delete" not in name}


@pytest.fixture
def shared_lab(shared_cluster):
    """The lab of the shared cluster."""
    return shared_cluster.lab


@pytest.fixture
def short_logs_are_recognised(monkeypatch):
    """The fast path of ping's reader is taken from the first line on, so that short logs test it."""
    monkeypatch.setattr("wanbench.read.ingest.ping.scan.MIN_LINES", 1)


GROUPS = {
    "test_report.py": r"(?m)^def site\b",
    "documents": r"def test_blocks_run_one_after_the_other",
    "shared cluster": r"shared_(cluster|lab)",
    "own cluster": r"own_cluster",
    "clusters": r"pytest\.mark\.kafka",
    "lab": r"pytest\.mark\.lab",
    "example site": r"built_site",
}
"""
Tests that stay in one process, by what their module's text holds: those of the project's own site, those of the
cluster that all share, those of the cluster that tests may break, those that start clusters, those that make a lab, and
those of the example site, which is built once. Documents are apart: each runs in whatever process is free. The longest
come first, so that no process works through one of them alone at the end.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """
    Collect garbage neither while tests are collected nor, later, among what stays then: to look through the whole
    library and thousands of tests again and again took a third of the time of collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)  # tests make many objects, and few cycles
        gc.enable()


# Modules whose tests together take over nine seconds: stand-ins for clouds, clients of Kafka, repeated simulations.
SLOW = {
    "test_experiments_kafka_fault", "test_experiments_kafka_load_faults", "test_experiments_kafka_load_session",
    "test_experiments_kafka_open_loop", "test_experiments_openmessaging",
    "test_labs_aws", "test_labs_aws_msk", "test_labs_azure", "test_labs_gcp", "test_labs_several",
    "test_plausibility_unknown_regions", "test_publish_execute", 
    "test_stats_regions_clusters", "test_stats_regions_dyadic", "test_stats_tcp_loss",
    "test_stats_trials_scalability", "test_stats_trials_two_links", "test_studies_price_performance",
    "test_studies_region_loss", "test_studies_tail_latency",
}  # fmt: skip


def pytest_collection_modifyitems(items):
    """Mark slow modules, and bring the tests into the order in which their groups start: the short ones last."""
    order = [*GROUPS, "slow", "others"]

    def place(item):
        group = _group(item.path)
        return order.index(group if group in GROUPS else "slow" if item.path.stem in SLOW else "others")

    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")
    items.sort(key=place)


class ByModule(LoadScopeScheduling):
    """
    Tests of one module stay in one process, as they share its fixtures; so do those of one of `GROUPS`, except when
    none but tests that judge time run: they mostly wait, so that two modules at a time leave each other the processors.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = self.config.rootpath / nodeid.partition("::")[0]
        group = path.name if self.config.option.markexpr == "timing" else _group(path)
        return nodeid if group == "documents" else group


@cache
def _group(path: Path) -> str:
    text = path.read_text()
    return next((name for name, pattern in GROUPS.items() if re.search(pattern, text)), path.name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """xdist's own groups by marker do nothing with pytest 9.2, whose test names cannot be changed."""
    return ByModule(config, log)
