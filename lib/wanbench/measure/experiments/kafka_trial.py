"""Run a load with given settings of links, brokers and clients, and concurrent measurements that explain its result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from wanbench.checks import check_name, refusal
from wanbench.errors import LabError, ParameterError
from wanbench.measure.kafka.placement import BrokerSize, checked_sizes
from wanbench.measure.kafka.security import KINDS
from wanbench.measure.kafka.settings import checked_settings
from wanbench.measure.labs.base import Host
from wanbench.measure.links import LinkSettings
from wanbench.runs import RawFile

from .base import ExperimentError, KafkaSettings, Load, bounded, check_declared, cluster_of, links_of, one_of, reaching
from .broker_control import apply_sizes
from .iperf3 import Iperf3
from .kafka_open_loop import KafkaOpenLoop
from .load_settings import setting_pairs
from .ping import Ping
from .sampling import ProcessorUse

RESTART_S = 20.0
"""
Time until a restarted cluster serves again. On two busy processors, three brokers 70 ms apart took 20 to 27 s, compared
with 14 s for the first start.
"""
_SET_S = 1.0  # time to set the links


@dataclass(frozen=True)
class KafkaTrial:
    """
    Run a load under settings of links and brokers, with concurrent experiments.

    The processor time of each program is always sampled too.

    Parameters
    ----------
    load : Load
        For example `KafkaLoad` or `KafkaOpenLoop`.
    link : LinkSettings, optional
        Settings for both directions of the pair during this trial; None stands for those of the lab. With `path`, these
        are the expected properties of that path.
    background : Iperf3, optional
        Traffic from source to target, started when all producers send.
    ping : Ping, optional
        Pings in the same direction, started at the same time.
    trickle : KafkaOpenLoop, optional
        A light load for the same clients, such as 100 records/s, which measures latencies that `load` does not. It
        sends before `load` starts, and ends with it.
    alongside : tuple of ConcurrentExperiment
        Further concurrent experiments. The times of `BrokerActions` count from when the load sends.
    client_regions : tuple of str, optional
        Regions over whose hosts producers and consumers are distributed round-robin. An entry stands for the first host
        of the region or, with a suffix as in "aws:us-east-1/3", for the host with this number, counted from 0. With
        None, producers run on the source and consumers on the target.
    broker_settings, security, kafka_version : optional
        Broker settings; security ("plain", "tls" or "mtls"); and a version of Kafka, such as "4.4.0". They replace the
        cluster's own, and the cluster is restarted to apply them.
    gateway_bps : float, optional
        Rate of a queue that all links leaving a region share: see `LocalLab.set_gateway`.
    system : str, optional
        Name of the system in analyses. It does not affect the trial.
    cluster : str, optional
        The name of an external cluster to use. It cannot be restarted, so broker_settings, security and kafka_version
        must be None.
    broker_sizes : BrokerSize or tuple, optional
        The size of all brokers, or of each in order, with None for a broker without limits.
    path : str, optional
        The path to use, in a lab with several paths between the same hosts; None stands for the previous trial's path.
    """

    load: Any  # a Load
    link: LinkSettings | None = None
    background: Iperf3 | None = None
    ping: Ping | None = None
    trickle: KafkaOpenLoop | None = None
    alongside: tuple[Any, ...] = ()
    client_regions: tuple[str, ...] | None = None
    broker_settings: KafkaSettings | None = None
    security: str | None = one_of(None, KINDS)
    kafka_version: str | None = None
    gateway_bps: float | None = bounded(None, 1000, 1e12)
    system: str | None = None
    cluster: str | None = None
    broker_sizes: BrokerSize | tuple[BrokerSize | None, ...] | None = None
    path: str | None = None

    name: ClassVar[str] = "kafka_trial"

    def __post_init__(self):
        if not isinstance(self.load, Load):
            raise refusal("KafkaTrial load", self.load, "an experiment that loads a cluster, such as a KafkaLoad")
        if not isinstance(self.trickle, KafkaOpenLoop | None):
            raise refusal("KafkaTrial trickle", self.trickle, "a KafkaOpenLoop, or None")
        for experiment in self.alongside:
            if not hasattr(experiment, "concurrently"):
                message = f"KafkaTrial alongside has {experiment}; allowed: experiments with a method `concurrently`."
                raise ParameterError(message)
        if self.client_regions is not None:
            names = () if isinstance(self.client_regions, str) else tuple(self.client_regions)
            if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
                raise refusal("KafkaTrial client_regions", self.client_regions, "names of regions, each once, or None")
            object.__setattr__(self, "client_regions", names)
        if self.broker_settings is not None:
            settings = setting_pairs(self, "broker_settings")
            checked_settings(dict(settings))
            object.__setattr__(self, "broker_settings", settings or None)
        object.__setattr__(self, "broker_sizes", checked_sizes(self.broker_sizes))
        check_declared(self)
        for name in ("system", "cluster", "path", "kafka_version"):
            if getattr(self, name) is not None:
                check_name(f"KafkaTrial {name}", getattr(self, name))
        if self.cluster is not None and self.restarts:
            allowed = "None, as it cannot be restarted with other settings"
            given = f"KafkaTrial on the external cluster {self.cluster!r} has {' and '.join(self.restarts)}"
            raise ParameterError(f"{given}; allowed: {allowed}.")

    @property
    def restarts(self) -> list[str]:
        """Return the names of the settings that require a restart of the cluster."""
        return [name for name in ("broker_settings", "security", "kafka_version") if getattr(self, name) is not None]

    @property
    def cluster_settings(self) -> tuple[KafkaSettings | None, str | None, str | None]:
        """Return broker settings, security and version; trials that agree in all three share a running cluster."""
        return (self.broker_settings, self.security, self.kafka_version)

    @property
    def rtt_ms(self) -> float | None:
        """Return the nominal round-trip time of the trial's link in ms; None if the trial uses the lab's own link."""
        return None if self.link is None else 2 * self.link.delay_ms

    def __str__(self) -> str:
        parts = [f"trial with {self.load}"]
        parts += [f"on the cluster {self.cluster}"] if self.cluster else []
        parts += [f"link {_link_text(self.link)}"] if self.link is not None else []
        parts += [f"path {self.path}"] if self.path else []
        parts += [f"clients in {', '.join(self.client_regions)}"] if self.client_regions else []
        parts += [f"brokers with {name} {value}" for name, value in self.broker_settings or ()]
        parts += [self.security] if self.security else []
        parts += [f"Kafka {self.kafka_version}"] if self.kafka_version else []
        parts += [f"gateways of {self.gateway_bps / 1e6:g} Mbit/s"] if self.gateway_bps else []
        sizes = (self.broker_sizes,) if isinstance(self.broker_sizes, BrokerSize) else self.broker_sizes or ()
        parts += [f"brokers {', '.join(str(size or 'without limits') for size in sizes)}"] if sizes else []
        parts += [f"background {self.background}"] if self.background else []
        parts += [str(self.ping)] if self.ping else []
        parts += [f"trickle: {self.trickle}"] if self.trickle else []
        return "; ".join([*parts, *map(str, self.alongside)])

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Apply the settings of links and brokers, start concurrent measurements, and run the load; return all raw files.

        Raise ExperimentError if the lab lacks something that the trial needs (emulated links, a gateway, a region, a
        cluster or a way to change it), or if any part fails. All output is kept.
        """
        source, target = (reaching(host, self.cluster) for host in (source, target))
        clients = self._clients(source)
        self._set_path_and_gateways(source)
        self._set_cluster(source)
        files: list[list[RawFile]] = []
        error, sending = None, Future[bool]()
        where = source, target, folder, stem
        try:
            with ExitStack() as stack:
                if self.link is not None and self.path is None:
                    stack.enter_context(_changed_links(source, target, self.link))
                if self.broker_sizes is not None:
                    stack.enter_context(apply_sizes(source, self.broker_sizes))
                for part in (ProcessorUse(), *self.alongside):
                    more = {"sending": sending.result} if getattr(part, "waits_for_load", False) else {}
                    files.append(stack.enter_context(part.concurrently(*where, **more)))
                for part in filter(None, (self.background, self.ping)):  # of fixed duration, once the load sends
                    measure = partial(lambda part: part.run(*where) if sending.result() else (), part)
                    files.append(stack.enter_context(_in_thread(measure, lambda: _decide(sending, False))))
                if self.trickle is not None:
                    hosts = ([source], [target]) if clients is None else (clients, clients)
                    trickling = _trickling(self.trickle, cluster_of(source), *hosts, folder, stem)
                    files.append(stack.enter_context(trickling))
                stack.callback(_decide, sending, False)
                ends = (source, target) if clients is None else (clients, clients)
                run = self.load.run if clients is None else self.load.run_on
                files.append(run(*ends, folder, stem, when_sending=lambda: _decide(sending, True)))
        except LabError as failed:
            error = failed
            files.append(list(getattr(failed, "files", ())))
        kept = list({file.path: file for group in files for file in group}.values())
        if error is not None:
            raise ExperimentError(str(error), kept) from error
        return kept

    def _clients(self, source: Host) -> list[Host] | None:
        if self.client_regions is None:
            return None
        lab = cluster_of(source).lab
        places = [region_and_number(name) for name in self.client_regions]
        if missing := [f"{region}/{n}" if n else region for region, n in places if n >= len(lab.hosts.get(region, ()))]:
            there = ", ".join(sorted(lab.hosts))
            raise ExperimentError(f"client_regions has {', '.join(missing)}; the lab has {there}")
        return [reaching(lab.host(*place), self.cluster) for place in places]

    def _set_path_and_gateways(self, source: Host) -> None:
        if self.path is not None:
            if source.paths is None:
                raise ExperimentError(f"the lab of {source.name} has only one path and cannot use {self.path!r}")
            source.paths.use(self.path)
        if not hasattr(source.links, "set_gateway"):
            if self.gateway_bps is not None:
                raise ExperimentError(f"gateway_bps is set, but the links of {source.name} cannot share a gateway")
            return
        for region in source.links.regions:
            if source.links.gateways.get(region) != self.gateway_bps:
                source.links.set_gateway(region, self.gateway_bps)

    def _set_cluster(self, source: Host) -> None:
        """Apply this trial's cluster settings, and undo those of the previous trial."""
        reconfigure = getattr(source.cluster, "reconfigure", None)
        if reconfigure is not None:
            try:
                reconfigure(dict(self.broker_settings or ()), self.security, self.kafka_version)
            except LabError as error:
                raise ExperimentError(f"the settings of the cluster cannot be changed: {error}") from error
        elif asked := self.restarts:
            sets = f"but the trial sets {' and '.join(asked)}"
            raise ExperimentError(f"{cluster_of(source)!r} cannot be restarted with other settings, {sets}")

    def set_up_s(self, before: KafkaTrial | None) -> float:
        """
        Return the expected time in s to restart the cluster for this trial: after the trial `before` or, if that is
        None, after the cluster's first start.

        An external cluster is never restarted.
        """
        if self.cluster is not None:
            return 0.0
        settings = (None,) * 3 if before is None else before.cluster_settings
        return 0.0 if self.cluster_settings == settings else RESTART_S

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the expected duration of the load in s; background traffic and pings last slightly longer.

        If `broker_sizes` names links of single brokers, these links together carry the load.
        """
        sizes = self.broker_sizes if isinstance(self.broker_sizes, tuple) else ()
        links_bps = sum(size.link_bps or 0 for size in sizes if size)
        return _SET_S + self.load.expected_s(rtt_ms, links_bps or rate_bps)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the bytes that the source sends; None if they depend on an unknown rate."""
        parts = [part for part in (self.load, self.background, self.ping) if part is not None]
        sent = [part.expected_bytes(rtt_ms, rate_bps) for part in parts]
        return None if None in sent else sum(filter(None, sent))


def _decide(sending: Future[bool], answer: bool) -> None:
    """Tell waiting threads whether the load sends; only the first call has an effect."""
    if not sending.done():
        sending.set_result(answer)


@contextmanager
def _trickling(load: KafkaOpenLoop, *where: Any) -> Generator[list[RawFile]]:
    """Run a second load in a thread, from when it sends to the end of the block; yield its raw files."""
    sending: Future[bool] = Future()
    session = load.session(*where, lambda: _decide(sending, True))

    def run() -> list[RawFile]:
        try:
            return session.run()
        finally:
            _decide(sending, False)

    with _in_thread(run, session.over.set) as files:
        if sending.result():
            yield files


@contextmanager
def _in_thread(run: Callable[[], Iterable[RawFile]], end: Callable[[], None]) -> Generator[list[RawFile]]:
    """Call `run` in a thread, and `end` at the end of the block; yield the raw files, which `run` returns."""
    files: list[RawFile] = []

    def measure() -> None:
        try:
            files.extend(run())
        except LabError as error:
            files.extend(getattr(error, "files", ()))
            raise

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(measure)
        try:
            yield files
        finally:
            end()
    done.result()


def region_and_number(name: str) -> tuple[str, int]:
    """
    Split an entry of `client_regions` into a region and the number of a host there, 0 by default.

    >>> region_and_number("gcp:us-west1"), region_and_number("gcp:us-west1/3")
    (('gcp:us-west1', 0), ('gcp:us-west1', 3))
    """
    region, _, number = name.rpartition("/")
    return (region, int(number)) if region and number.isdigit() else (name, 0)


@contextmanager
def _changed_links(source: Host, target: Host, link: LinkSettings) -> Generator[None]:
    """Give both directions of a pair these settings, and in the end those from before."""
    links, pair = links_of(source), (source.region, target.region)
    before = {way: dict(vars(links.links[way])) for way in (pair, pair[::-1])}
    try:
        for way in before:
            links.set_link(*way, **asdict(link))
        yield
    finally:
        for way, settings in before.items():
            links.set_link(*way, **settings)


def _link_text(link: LinkSettings) -> str:
    parts = [f"{link.delay_ms:g} ms one way"]
    parts += [f"± {link.jitter_ms:.3g} ms"] if link.jitter_ms else []
    parts += [f"{link.loss:.2g} lost"] if link.loss else []
    parts += [f"{link.rate_bps / 1e6:g} Mbit/s"] if link.rate_bps else []
    return ", ".join(parts)
