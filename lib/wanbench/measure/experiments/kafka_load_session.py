"""One run of a load: make topics, run the tools, count batches, keep raw files, delete topics."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from wanbench.errors import ClusterError, CommandError, LabError
from wanbench.measure.kafka.programs import count_batches as batch_counter
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, ended_with, last_line
from .kafka_loads import put_records
from .perf_tools import (
    CONSUMER,
    PRODUCER,
    Tool,
    consumer_arguments,
    producer_arguments,
    recorders,
    stop_all,
    topic_name,
)

UNANSWERED = ("Unreachable", "Timeout")
"""Kinds of `AnswerError` that mean no broker answered."""
CHECK_S = 2.0
"""Interval of checks for dead brokers."""
TOO_FEW = b"Exiting before consuming"
"""Text in the consumer tool's message when it times out without records."""
_NO_RECORDS = b"0 records sent, "
_DRAIN_S = 60.0
"""Time for consumers to read the backlog, beyond their own timeout."""
_LONG_S = 1e6
"""Practically no time limit: stopping the tool ends the wait."""


class Session:
    """
    One run of `load` (a KafkaLoad) on `cluster`, its clients spread over the hosts round-robin.

    `run` does all of it; see `KafkaLoad.run`.
    """

    def __init__(
        self,
        load,
        cluster,
        producers: Sequence[Host],
        consumers: Sequence[Host],
        folder: Path,
        stem: str,
        when_sending: Callable[[], None] | None = None,
    ):
        self.load, self.cluster, self.folder, self.stem = load, cluster, folder, stem
        self.when_sending = when_sending or (lambda: None)
        self.asker = [*producers, *consumers][0]
        self.topics = [topic_name(stem, number) for number in range(load.topics)]
        self.producer_hosts = [producers[n % len(producers)] for n in range(load.producers)]
        self.consumer_hosts = [consumers[n % len(consumers)] for n in range(load.n_consumers)]
        self.made: list[str] = []
        self.producers: list[Tool] = []
        self.consumers: list[Tool] = []
        self.stopped: list[Tool] = []
        self.unfinished: str | None = None
        self.missing: list[str] = []
        self.payload: dict | None = None
        self.started_at_utc = now_utc()
        self.started_at_s, self.stop_at_s = time.time(), None

    def run(self) -> list[RawFile]:
        """Returns the raw files; ExperimentError, with the files so far, if anything failed."""
        files: list[RawFile] = []
        reason = counted = None
        try:
            try:
                self._make_topics()
                self._start()
                with ThreadPoolExecutor(len(self.producers) + len(self.consumers)) as pool:
                    self._follow(pool)
            except LabError as error:
                reason = str(error)
            finally:
                stop_all([*self.producers, *self.consumers])
            if self.made and self.producers:
                counted, fault = count_batches(self.cluster, self.asker, self.made, self.load.timestamps)
                reason = reason or fault
        finally:
            undeleted = self._delete_topics()
            files += self._keep(counted)
        if reason := reason or undeleted:
            raise ExperimentError(reason, files)
        return files

    def _make_topics(self):
        load = self.load
        settings = {"message.timestamp.type": load.timestamps, "retention.ms": "-1", "retention.bytes": "-1"}
        for topic in self.topics:
            self.cluster.create_topic(
                topic,
                partitions=load.partitions,
                replication=load.replication,
                settings={**settings, **dict(load.topic_settings)},
                placement=load.placement,
            )
            self.made.append(topic)

    def _start(self):
        load, cluster = self.load, self.cluster
        payloads = {}
        if load.payload != "letters":
            payloads, self.payload = put_records(
                load.payload, load.record_bytes, load.payload_seed, self.producer_hosts
            )
        tools = [
            (
                host,
                PRODUCER,
                producer_arguments(
                    load,
                    bootstrap=cluster.bootstrap,
                    topic=self._topic(number),
                    number=number,
                    payload=payloads.get(host.name),
                    client_file=cluster.client_file(host),
                ),
                f"producer-{number}",
            )
            for number, host in enumerate(self.producer_hosts)
        ]
        # A consumer that was stopped stays a member until its session is over, and would hold up a group of its name.
        unique = uuid.uuid4().hex[:8]
        for number, host in enumerate(self.consumer_hosts):
            group, topic = self._group(number)
            arguments = consumer_arguments(
                load,
                bootstrap=cluster.bootstrap,
                topic=topic,
                group=f"{topic}-group-{group}-{unique}",
                number=number,
                client_file=cluster.client_file(host),
                region=host.region,
            )
            tools.append((host, CONSUMER, arguments, f"consumer-{group}-{number}"))
        recorder = recorders([*self.producer_hosts, *self.consumer_hosts])
        for host, main_class, arguments, what in tools:
            command = cluster.java(host, main_class, *arguments, heap_mb=load.heap_mb, jvm=load.jvm)
            started = self.producers if main_class == PRODUCER else self.consumers
            started.append(Tool(host, recorder[host.name], command, self.stem, what))

    def _topic(self, producer):
        return self.topics[producer % self.load.topics]

    def _group(self, consumer):
        """The number of a consumer's group, over all topics, and its topic."""
        group = consumer // self.load.consumers
        return group, self.topics[group // self.load.consumer_groups]

    def _follow(self, pool):
        """Wait for the producers to end or time out, then for the consumers."""
        try:
            ends = {pool.submit(tool.wait, _LONG_S): tool for tool in (*self.producers, *self.consumers)}
            if self.load.is_stopped:
                self._await_windows(ends)
                self.when_sending()
                self._watch(ends, time.monotonic() + self.load.warmup_s + self.load.duration_s, early=True)
                self.missing.append("summary lines and metrics of the producers: they were stopped on schedule")
                self._stop_producers(self.producers)
            else:
                self.when_sending()
                late = self._watch(ends, time.monotonic() + self.load.time_limit_s(), early=False)
                if late:
                    self._stop_unfinished([ends[end] for end in late])
            self._drain(ends)
        finally:
            stop_all([*self.producers, *self.consumers])

    def _stop_producers(self, producers):
        self.stop_at_s = time.time()
        self.stopped = list(producers)
        stop_all(producers)

    def _stop_unfinished(self, producers):
        """
        Stop producers that did not finish in time: the system is saturated, which is a result. A producer without any
        figures is an error.
        """
        limit_s, producers = self.load.time_limit_s(), sorted(producers, key=self.producers.index)
        for tool in producers:
            if WINDOW.encode() not in tool.so_far().stdout:
                raise self._cause(f"{tool.name} printed no figures within {limit_s:g} s: {last_line(tool.so_far())}")
        self.unfinished = (
            f"{len(producers)} of {self.load.producers} producers had not sent all their "
            f"{self.load.records_to_send:,} records after {limit_s:g} s and were stopped: "
            f"{', '.join(tool.what for tool in producers)}"
        )
        self.missing.append("summary lines and metrics of the producers that were stopped")
        self._stop_producers(producers)

    def _await_windows(self, ends):
        """Wait until every producer has printed a window."""
        limit_s = self.load.start_timeout_s
        with ThreadPoolExecutor(len(self.producers)) as others:
            windows = {others.submit(tool.process.wait_for_output, WINDOW, limit_s): tool for tool in self.producers}
            try:
                if self._watch(ends, time.monotonic() + limit_s + CHECK_S, early=True, until=windows):
                    raise self._cause(f"producers printed no figures within {limit_s:g} s")
            except BaseException:
                stop_all(self.producers)
                raise

    def _watch(
        self, ends: dict[Future, Tool], deadline: float, *, early: bool, until: dict[Future, Tool] | None = None
    ) -> set[Future]:
        """
        Wait for all of `until` (the producers' ends); returns those unfinished at the deadline.

        CommandError if a tool fails, a broker dies or, with `early`, a producer ends.
        """
        waiting = set(until or [end for end, tool in ends.items() if tool in self.producers])
        watched = set(ends) | waiting
        while waiting:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            done, watched = wait(watched, timeout=min(left_s, CHECK_S), return_when=FIRST_COMPLETED)
            waiting -= done
            for end in done & set(ends):
                self._examine(end, ends[end], waiting, early=early)
            for window in done - set(ends):
                self._examine_window(window, until[window])
            self.cluster.check()
        return waiting

    def _examine_window(self, window, tool):
        """CommandError if a producer did not print the awaited window."""
        if window.exception() is None:
            return
        try:
            done = tool.wait(1.0)
        except CommandError:
            raise self._cause(
                f"{tool.name} printed no figures within {self.load.start_timeout_s:g} s: {last_line(tool.so_far())}"
            ) from None
        raise self._cause(ended_with(tool.name, done))

    def _examine(self, end, tool, waiting, *, early):
        """CommandError if a tool failed, or ended too early."""
        done = end.result()
        if done.returncode:
            raise self._cause(ended_with(tool.name, done))
        if tool in self.producers:
            if any(line.startswith(_NO_RECORDS) for line in done.stdout.splitlines()):
                raise self._cause(f"{tool.name} sent no record: {last_line(done)}")
            if WINDOW.encode() not in done.stdout:
                raise self._cause(f"{tool.name} ended without figures: {last_line(done)}")
            if early:
                raise self._cause(
                    f"{tool.name} had sent all its records, {self.load.records_to_send:,}, before the scheduled end; "
                    f"raise most_bytes"
                )
        elif waiting and TOO_FEW in done.stdout:
            raise self._cause(
                f"{tool.name} ended before the producers did, after {self.load.consumer_timeout_s:g} s without a "
                "record; raise consumer_timeout_s"
            )

    def _cause(self, reason):
        """The error of a failed tool, preceded by any broker's death."""
        try:
            self.cluster.check()
        except ClusterError as error:
            return ClusterError(f"{str(error).removesuffix('.')}. Then: {reason}", error.log)
        return CommandError(reason)

    def _drain(self, ends):
        """If `drain` is set, wait until the consumers have read all records."""
        if self.consumers and not self.load.drain:
            self.missing.append("the ends of the consumers: they were stopped when the producers had ended")
            stop_all(self.consumers)
            return
        left = {end for end, tool in ends.items() if tool in self.consumers}
        _, late = wait(left, timeout=self.load.consumer_timeout_s + _DRAIN_S)
        for end in left - late:
            done = end.result()
            if done.returncode:
                raise self._cause(ended_with(ends[end].name, done))
        self.missing += [f"the end of {ends[end].name}: it still read, and was stopped" for end in late]

    def _delete_topics(self) -> str | None:
        """Delete the topics; returns errors."""
        why = None
        for topic in self.made:
            try:
                self.cluster.delete_topic(topic)
            except LabError as error:
                why = f"topic {topic} could not be deleted: {error}"
                if getattr(error, "kind", None) in UNANSWERED:
                    break
        return why

    def _keep(self, counted) -> list[RawFile]:
        files = [file for tool in (*self.producers, *self.consumers) for file in tool.keep(self.folder, self.load.name)]
        documents = {"batches": counted} if counted else {}
        if self.producers:
            times = {"started_at_s": self.started_at_s, "asked_to_stop_at_s": self.stop_at_s}
            times |= times_that_count(self.load, self.producers, self.stopped, self.stop_at_s)
            if times["counts_from_s"] is None:
                self.missing.append("a time in which all producers sent after their warm-up")
            documents["times"] = {**times, "ended_at_s": time.time(), **self._about()}
        for name, content in documents.items():
            text = json.dumps(content, separators=(",", ":")).encode() + b"\n"
            about = {"started_at_utc": self.started_at_utc, "ended_at_utc": now_utc()}
            files.append(write_raw(self.folder, self.load.name, f"{self.stem}.{name}.json", text, **about))
        return files

    def _about(self):
        """The contents of <stem>.times.json other than times."""
        return {
            "producers": [
                {"host": host.name, "topic": self._topic(number)} for number, host in enumerate(self.producer_hosts)
            ],
            "consumers": [
                {"host": host.name, "topic": self._group(number)[1], "group": self._group(number)[0]}
                for number, host in enumerate(self.consumer_hosts)
            ],
            "payload": self.payload,
            "target_records_per_s": self.load.target_records_per_s,
            "unfinished": self.unfinished,
            "missing": self.missing,
        }


WINDOW = "records/sec ("
"""Text in every line of figures from the producer tool."""
_STEADY = b"teady state"
_COUNT_S = 300.0
"""Timeout for counting a broker's batches, in logs of many GB."""
_CONNECT_S = 5.0
"""Timeout for connecting to a broker, which has just been serving."""


def times_that_count(
    load, producers: Sequence[Tool], stopped: Sequence[Tool], stopped_at_s: float | None
) -> dict[str, float | None]:
    """
    The period in Unix s in which all producers sent after their warm-up; None if unknown.

    Parameters
    ----------
    stopped, stopped_at_s
        The producers that were stopped, and the time.

    Returns
    -------
    dict
        `all_sending_at_s`: when the last producer printed its first window. `counts_from_s`: the end of the warm-up
        after that, or when the last producer reported its steady state. `counts_until_s`: when producers were stopped
        or the first one printed its last figures, at the latest after `duration_s`, because producers that fall behind
        their rate send for longer.
    """
    lines = [tool.line_times() for tool in producers]
    windows = [[at_s for at_s, line in tool if WINDOW.encode() in line] for tool in lines]
    times: dict[str, float | None] = dict.fromkeys(("all_sending_at_s", "counts_from_s", "counts_until_s"))
    if not all(windows):
        return times
    times["all_sending_at_s"] = from_s = max(first for first, *_ in windows)
    from_s += load.warmup_s
    if load.warmup_records:
        # The first such line announces the warm-up.
        steady = [[at_s for at_s, line in tool if _STEADY in line][1:] for tool in lines]
        if not all(steady):
            return times
        from_s = max(first for first, *_ in steady)
    until_s = min(
        stopped_at_s if tool in stopped else times_s[-1] for tool, times_s in zip(producers, windows, strict=True)
    )
    if load.duration_s is not None and not load.is_stopped:
        until_s = min(until_s, from_s + load.duration_s)
    if from_s < until_s:
        times |= {"counts_from_s": from_s, "counts_until_s": until_s}
    return times


def count_batches(cluster, asker: Host, topics: Sequence[str], timestamps: str) -> tuple[dict, str | None]:
    """
    Record batches of topics per second, each partition counted in its leader's log.

    Returns
    -------
    dict
        `timestamps`, the kind that the topics keep; `rows` of [broker, topic, partition, second, batches, records,
        bytes]; `cut_bytes` of batches that were not whole; `without_leader`, partitions that could not be counted;
        `replicas`, rows of [topic, partition, leader, replicas, in-sync replicas] and `regions`, pairs of [broker,
        region]. Or only `left_out`: why the logs cannot be reached.
    str or None
        An error at one of the brokers.
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
