"""Results of a load: the counted period, from the producers' output, and batches, from the leaders' logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from wanbench.errors import ClusterError, LabError
from wanbench.measure.kafka.programs import count_batches as batch_counter
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import program_command

from .perf_tools import Tool

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
