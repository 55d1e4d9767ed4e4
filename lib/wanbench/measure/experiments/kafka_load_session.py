"""Run one load by Kafka's performance tools: topics, tools with time-stamped output, batch counts and raw files."""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wanbench.errors import ClusterError, CommandError, LabError
from wanbench.measure.kafka.programs import count_batches as batch_counter
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import program_command

from .base import ended_with, last_line
from .kafka_tools import CONSUMER, PRODUCER, Tool, consumer_arguments, producer_arguments, recorders, stop_all, topic_of
from .load_settings import put_records
from .session import ClientSession, as_json

TOO_FEW = b"Exiting before consuming"  # part of the consumer tool's message when it times out without records
_NO_RECORDS = b"0 records sent, "
_DRAIN_S = 60.0  # time for consumers to read the backlog, in addition to their own timeout
_RUN_S = 30.0
WINDOW = b"records/sec ("  # part of each line of figures from the producer tool
_STEADY = b"teady state"
_COUNT_S = 300.0  # timeout for counting a broker's batches, in logs of many GB
_CONNECT_S = 5.0  # timeout for reaching a broker, short because the brokers have just been serving


class LoadSession(ClientSession):
    """A run of `settings` (a KafkaLoad) on `cluster`, with clients distributed over the hosts round-robin."""

    def __init__(self, load: Any, *where: Any):
        super().__init__(load, *where)
        producers, consumers = self.producer_hosts, self.consumer_hosts
        self.asker = [*producers, *consumers][0]
        self.topics = [topic_of(self.stem, number) for number in range(load.topics)]
        self.producer_hosts = [producers[n % len(producers)] for n in range(load.producers)]
        self.consumer_hosts = [consumers[n % len(consumers)] for n in range(load.n_consumers)]
        self.missing: list[str] = []
        self.producers: list[Tool] = []
        self.consumers: list[Tool] = []
        self.stopped: list[Tool] = []
        self.unfinished = self.payload = self.counted = self.stop_at_s = None
        self.started_at_s = time.time()

    def _measure(self) -> None:
        self._make_topics(self.topics, **{"message.timestamp.type": self.settings.timestamps})
        fault = None
        try:
            self._start()
            self._follow()
        except LabError as error:
            fault = error
        finally:
            self._stop()
        if self.producers:
            self.counted, uncounted = count_batches(self.cluster, self.asker, self.topics, self.settings.timestamps)
            fault = fault or (uncounted and CommandError(uncounted))
        if fault:
            raise fault

    def _programs(self) -> list[Tool]:
        return [*self.producers, *self.consumers]

    def _stop(self) -> None:
        stop_all(self._programs())

    def _start(self) -> None:
        load, cluster = self.settings, self.cluster
        payloads = {}
        if load.payload != "letters":
            payloads, self.payload = put_records(load, self.producer_hosts)
        recorder = recorders([*self.producer_hosts, *self.consumer_hosts])

        def start(host: Host, main_class: str, what: str, arguments: Callable[..., list[str]], **options: Any) -> Tool:
            options |= {"bootstrap": cluster.bootstrap, "client_file": cluster.client_file(host)}
            command = cluster.java(host, main_class, *arguments(load, **options), heap_mb=load.heap_mb, jvm=load.jvm)
            return Tool(host, recorder[host.name], command, self.stem, what)

        for number, host in enumerate(self.producer_hosts):
            options = {"topic": self._topic(number), "number": number, "payload": payloads.get(host.name)}
            self.producers.append(start(host, PRODUCER, f"producer-{number}", producer_arguments, **options))
        # A stopped consumer remains a member until its session expires, and would delay a group of the same name.
        unique = uuid.uuid4().hex[:8]
        for number, host in enumerate(self.consumer_hosts):
            group, topic = self._group(number)
            options = {"topic": topic, "number": number, "region": host.region}
            options["group"] = f"{topic}-group-{group}-{unique}"
            self.consumers.append(start(host, CONSUMER, f"consumer-{group}-{number}", consumer_arguments, **options))

    def _topic(self, producer: int) -> str:
        return self.topics[producer % self.settings.topics]

    def _group(self, consumer: int) -> tuple[int, str]:
        """Return the number of a consumer's group, counted over all topics, and the group's topic."""
        group = consumer // self.settings.consumers
        return group, self.topics[group // self.settings.consumer_groups]

    def _follow(self) -> None:
        load = self.settings
        if load.is_stopped:
            if not self._until(lambda: all(map(_has_figures, self.producers)), load.start_timeout_s):
                raise self._no_figures(self.producers, load.start_timeout_s)
            self.when_sending()
            self._pause(load.warmup_s + load.duration_s)
            self.missing.append("summary lines and metrics of the producers: they were stopped on schedule")
            self._stop_producers(self.producers)
        else:
            self.when_sending()
            if not self._until(lambda: all(tool.done for tool in self.producers), load.time_limit_s()):
                self._stop_unfinished()
        self._drain()

    def _stop_producers(self, producers: Sequence[Tool]) -> None:
        self.stop_at_s = time.time()
        self.stopped = list(producers)
        stop_all(producers)

    def _stop_unfinished(self) -> None:
        """
        Stop producers that did not finish in time: the system is saturated, which is a result.

        Raise an error if one of them has printed no figures.
        """
        limit_s, producers = self.settings.time_limit_s(), [tool for tool in self.producers if not tool.done]
        if not all(map(_has_figures, producers)):
            raise self._no_figures(producers, limit_s)
        late = f"{len(producers)} of {self.settings.producers} producers had not sent all their"
        stopped = f"after {limit_s:g} s and were stopped: {', '.join(tool.what for tool in producers)}"
        self.unfinished = f"{late} {self.settings.records_to_send:,} records {stopped}"
        self.missing.append("summary lines and metrics of the producers that were stopped")
        self._stop_producers(producers)

    def _no_figures(self, producers: Sequence[Tool], limit_s: float) -> LabError:
        tool = next(tool for tool in producers if not _has_figures(tool))
        return self._cause(f"{tool} printed no figures within {limit_s:g} s: {last_line(tool.so_far())}")

    def _look(self) -> None:
        for tool in self._programs():
            if tool.done is None and not tool.process.is_running():
                tool.wait(_RUN_S)
                self._examine(tool)
        self._check_brokers()

    def _examine(self, tool: Tool) -> None:
        """Raise CommandError if a tool that has ended failed or ended too early."""
        done, load = tool.so_far(), self.settings
        if done.returncode:
            raise self._cause(ended_with(str(tool), done))
        if tool in self.producers:
            if any(line.startswith(_NO_RECORDS) for line in done.stdout.splitlines()):
                raise self._cause(f"{tool} sent no record: {last_line(done)}")
            if not _has_figures(tool):
                raise self._cause(f"{tool} ended without figures: {last_line(done)}")
            if load.is_stopped:
                sent = f"{tool} had sent all its records, {load.records_to_send:,}"
                raise self._cause(f"{sent}, before the scheduled end; raise most_bytes")
        elif TOO_FEW in done.stdout and not all(tool.done for tool in self.producers):
            silent = f"after {load.consumer_timeout_s:g} s without a record; raise consumer_timeout_s"
            raise self._cause(f"{tool} ended before the producers did, {silent}")

    def _cause(self, reason: str) -> LabError:
        """Return the error for a failed tool; if a broker died, the message says so first."""
        try:
            self.cluster.check()
        except ClusterError as error:
            return ClusterError(f"{str(error).removesuffix('.')}. Then: {reason}", error.log)
        return CommandError(reason)

    def _drain(self) -> None:
        """Wait until the consumers have read all records; stop them instead if `drain` is False."""
        if self.consumers and not self.settings.drain:
            self.missing.append("final output of the consumers: they were stopped when the producers had ended")
            stop_all(self.consumers)
        elif not self._until(
            lambda: all(tool.done for tool in self.consumers), self.settings.consumer_timeout_s + _DRAIN_S
        ):
            late = [tool for tool in self.consumers if not tool.done]
            self.missing += [f"final output of {tool}: it was still reading, and was stopped" for tool in late]

    def _keep(self, error: str | None) -> None:
        for tool in self._programs():
            self.files += tool.keep(self.folder, self.settings.name)
        if self.counted:
            self._write("batches.json", as_json(self.counted))
        if self.producers:
            self._write("times.json", as_json(self._times()))

    def _times(self) -> dict[str, Any]:
        times = counted_period(self.settings, self.producers, self.stopped, self.stop_at_s)
        if times["counts_from_s"] is None:
            self.missing.append("a time in which all producers sent after their warm-up")
        producers = [(host, self._topic(number)) for number, host in enumerate(self.producer_hosts)]
        consumers = [(host, *self._group(number)) for number, host in enumerate(self.consumer_hosts)]
        return {
            "started_at_s": self.started_at_s,
            "asked_to_stop_at_s": self.stop_at_s,
            **times,
            "ended_at_s": time.time(),
            "producers": [{"host": host.name, "topic": topic} for host, topic in producers],
            "consumers": [{"host": host.name, "topic": topic, "group": group} for host, group, topic in consumers],
            "payload": self.payload,
            "target_records_per_s": self.settings.target_records_per_s,
            "unfinished": self.unfinished,
            "missing": self.missing,
        }


def _has_figures(tool: Tool) -> bool:
    return WINDOW in tool.so_far().stdout


def counted_period(
    load: Any, producers: Sequence[Tool], stopped: Sequence[Tool], stopped_at_s: float | None
) -> dict[str, float | None]:
    """
    Return the period, in Unix s, in which all producers were sending after their warm-up; unknown values are None.

    `all_sending_at_s`: when the last producer printed its first window. `counts_from_s`: `warmup_s` later; with
    `warmup_records`, when the last producer reported its steady state. `counts_until_s`: when producers were `stopped`
    (at `stopped_at_s`), or when the first producer printed its last figures, but at most `duration_s` after the start
    of the period, because producers that fall behind their target rate send for longer.
    """
    lines = [tool.line_times() for tool in producers]
    windows = [[at_s for at_s, line in tool if WINDOW in line] for tool in lines]
    times: dict[str, float | None] = dict.fromkeys(("all_sending_at_s", "counts_from_s", "counts_until_s"))
    if not all(windows):
        return times
    times["all_sending_at_s"] = from_s = max(first for first, *_ in windows)
    from_s += load.warmup_s
    if load.warmup_records:
        # The first line with this text announces the warm-up.
        steady = [[at_s for at_s, line in tool if _STEADY in line][1:] for tool in lines]
        if not all(steady):
            return times
        from_s = max(first for first, *_ in steady)
    until_s = min(
        times_s[-1] if stopped_at_s is None or tool not in stopped else stopped_at_s
        for tool, times_s in zip(producers, windows, strict=True)
    )
    if load.duration_s is not None and not load.is_stopped:
        until_s = min(until_s, from_s + load.duration_s)
    if from_s < until_s:
        times |= {"counts_from_s": from_s, "counts_until_s": until_s}
    return times


def count_batches(
    cluster: Any, asker: Host, topics: Sequence[str], timestamps: str
) -> tuple[dict[str, Any], str | None]:
    """
    Count the record batches of topics by second, in the log of each partition's leader; return the counts, and an error
    or None.

    The counts hold `rows` of [broker, topic, partition, second, batches, records, bytes]; `cut_bytes`, the size of
    incomplete batches; `without_leader`, the partitions that could not be counted; `replicas`, rows of [topic,
    partition, leader, replicas, in-sync replicas]; and `regions`, pairs of [broker, region]. If the logs cannot be
    reached, they hold only `left_out`, the reason. Requests about the topics are sent from the host `asker`.
    """
    try:
        described = [
            (topic["name"], partition)
            for topic in cluster.ask(asker, "topics", names=list(topics), connect_s=_CONNECT_S)
            for partition in topic["partitions"]
        ]
        leaders = {(topic, partition["partition"]): partition["leader"] for topic, partition in described}
        folders = {node_id: cluster.log_folder(node_id) for node_id in set(leaders.values()) - {None}}
    except ClusterError as error:
        return {"left_out": str(error)}, None
    except LabError as error:
        return {"left_out": str(error)}, f"batches in the logs cannot be counted: {error}"
    rows, cut_bytes, fault = [], 0, None
    for broker in cluster.brokers:
        if broker.node_id not in folders:
            continue
        try:
            program = program_command(broker.host, Path(batch_counter.__file__))
            done = broker.host.run([*program, folders[broker.node_id], *topics], timeout_s=_COUNT_S)
            counted = json.loads(done.stdout)
        except (LabError, ValueError) as error:
            fault = f"batches in the log of broker {broker.node_id} cannot be counted: {error}"
            continue
        its_own = (row for row in counted["rows"] if leaders.get((row[0], row[1])) == broker.node_id)
        rows += [[broker.node_id, *row] for row in its_own]
        cut_bytes += counted["cut_bytes"]
    without_leader = sorted(f"{topic}-{number}" for (topic, number), leader in leaders.items() if leader is None)
    return {
        "timestamps": timestamps,
        "rows": rows,
        "cut_bytes": cut_bytes,
        "without_leader": without_leader,
        "replicas": [
            [topic, *(partition[name] for name in ("partition", "leader", "replicas", "isr"))]
            for topic, partition in described
        ],
        "regions": [[broker.node_id, broker.host.region] for broker in cluster.brokers],
    }, fault
