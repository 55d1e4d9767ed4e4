"""
Tables of made-up fault episodes, as the reader would make them of a run folder, with a known answer.

Three producers send on a schedule to six partitions; broker p % 3 + 1, which stands in
region p % 3, leads partition p.
"""

from __future__ import annotations

import json

import pandas as pd

REGIONS = ("a:north", "b:middle", "c:south")
START_S = 1_800_000_000.0
PARTITIONS, RATE, LATENCY_S = 6, 20.0, 0.07
BEFORE_S, FAULT_S, AFTER_S = 5.0, 10.0, 8.0


def episode(
    ordinal=1,
    setting="cut",
    *,
    fault="cut",
    at=REGIONS[0],
    regions=None,
    acks="all",
    outage_s=3.0,
    detected_s=2.0,
    elected_s=2.5,
    reassigned_s=4.0,
    lost=0,
    undelivered=0,
    doubled=0,
    reread=0,
    swapped_log=0,
    damage=None,
    n_damaged=3,
    healed_s=2.0,
    leaders_back_s=None,
    watch_interval_s=0.25,
    block=1,
    run_id="run",
    controller_events=False,
    **settings,
):
    """
    Rows by table of one episode.

    From the fault on, nothing is acknowledged to surviving producers for `outage_s`, nor to producers of the region
    that is hit until a second after healing. Consumers of surviving regions get nothing for `reassigned_s`.
    `lost` records vanish from the log, `undelivered` ones are never received, `doubled` stand twice in the log,
    `reread` are received twice, `swapped_log` change places with a neighbour of their producer and partition. `damage`
    does to `n_damaged` receipts what its name says.
    """
    began = START_S + 1000 * ordinal
    fault_at = began + BEFORE_S
    heal_at, ended = fault_at + FAULT_S, fault_at + FAULT_S + AFTER_S
    hit = tuple((at if regions is None else regions).split(",")) if fault != "none" else ()
    test_id = f"{ordinal:04d}-{REGIONS[0]}-{REGIONS[1]}".replace(":", ".")
    about = {
        "run_id": run_id, "test_id": test_id, "attempt": 1, "from_region": REGIONS[0], "to_region": REGIONS[1],
        "source_file": "x",
    }  # fmt: skip
    records = _records(began, fault_at, heal_at, ended, hit, outage_s)
    log = _log(records, lost, doubled, swapped_log)
    receipts = _receipts(records, log, fault_at, heal_at, hit, undelivered, reread, reassigned_s, damage, n_damaged)
    rows = {
        "faults": [
            about
            | {
                "setting": setting, "block": block, "fault": fault, "at": at, "regions": ",".join(hit), "acks": acks,
                "min_insync": 2, "replication": 3, "partitions": PARTITIONS, "unclean": False,
                "group_protocol": "classic", "session_timeout_ms": 6000, "records_per_s": RATE, "record_bytes": 100,
                "broker_settings": json.dumps({"broker.session.timeout.ms": "3000"}), "client_settings": "{}",
                "started_at_s": began, "fault_at_s": fault_at, "fault_done_at_s": fault_at + 0.01,
                "heal_at_s": heal_at, "heal_done_at_s": heal_at + 0.01, "ended_at_s": ended,
                "healthy_at_s": heal_at + healed_s, "error": None, "damage": damage,
            }
            | settings
        ],
        "tests": [
            about
            | {"outcome": "done", "setting": setting, "started_at_utc": pd.Timestamp(began, unit="s", tz="UTC")}
        ],
        "fault_clients": [
            about
            | {"role": role, "client": k, "region": region, "host": f"h{k}", "started_at_s": began, "ended_at_s": ended}
            | {"killed": False}
            for role in ("producer", "consumer")
            for k, region in enumerate(REGIONS)
        ],
        "fault_records": [about | row for row in records.to_dict("records")],
        "fault_receipts": [about | row for row in receipts.to_dict("records")],
        "fault_log": [about | row for row in log.to_dict("records")],
        "fault_errors": [
            about | {"role": "producer", "client": k, "at_s": fault_at + 1 + k, "kind": kind, "message": "made up"}
            for k, kind in enumerate(("_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT"))
            if fault != "none"
        ],
    }  # fmt: skip
    times = (began, fault_at, heal_at, ended)
    watched = (hit, detected_s, elected_s, healed_s, leaders_back_s, watch_interval_s)
    rows["cluster_samples"] = [about | row for row in _cluster_samples(times, *watched)]
    rows["group_samples"] = [about | row for row in _group_samples(times, hit, reassigned_s, watch_interval_s)]
    if controller_events and hit:
        broker = REGIONS.index(hit[0]) + 1
        rows["controller_events"] = [
            about | {"at_s": fault_at + detected_s - 0.1, "node_id": 2, "kind": "fenced", "broker": broker, "text": ""},
            about | {"at_s": fault_at + elected_s - 0.1, "node_id": 2, "kind": "elected", "partition": 0, "text": ""},
        ]  # fmt: skip
    return rows


def _records(began, fault_at, heal_at, ended, hit, outage_s):
    per_producer = int((ended - 2 - began) * RATE)
    rows = []
    for producer, region in enumerate(REGIONS):
        for sequence in range(per_producer):
            due = began + sequence / RATE + producer / RATE / 3
            back = heal_at + 1 if region in hit else fault_at + outage_s
            acknowledged = due + LATENCY_S
            if hit and acknowledged > fault_at and due < back:
                acknowledged = max(back, due + LATENCY_S)
            rows.append((producer, sequence, sequence % PARTITIONS, due, due, acknowledged))
    names = ["producer", "sequence", "partition", "intended_at_s", "sent_at_s", "acknowledged_at_s"]
    records = pd.DataFrame(rows, columns=names)
    ordered = records.sort_values(["partition", "acknowledged_at_s", "producer", "sequence"], kind="stable")
    records.loc[ordered.index, "offset"] = ordered.groupby("partition").cumcount()
    return records.assign(offset=records.offset.astype(int), error=None)


def _log(records, lost, doubled, swapped):
    log = records[["partition", "offset", "producer", "sequence"]].sort_values(["partition", "offset"])
    log = log.reset_index(drop=True).assign(damaged=False)
    for k in range(swapped):  # neighbours of producer 1 in partition 1, two records apart from the next swap
        own = log.index[(log.producer == 1) & (log.partition == 1)][2 * k + 2 : 2 * k + 4]
        log.loc[own, "sequence"] = log.loc[own, "sequence"].to_numpy()[::-1]
    log = log.drop(log.index[(log.producer == 2) & (log.partition == 2)][5 : 5 + lost])
    again = log[(log.producer == 0) & (log.partition == 0)].head(doubled)
    return pd.concat([log, again.assign(offset=again.offset + 1_000_000)], ignore_index=True)


def _receipts(records, log, fault_at, heal_at, hit, undelivered, reread, reassigned_s, damage, n_damaged):
    receipts = log.merge(records[["producer", "sequence", "acknowledged_at_s"]], on=["producer", "sequence"])
    receipts = receipts.rename(columns={"acknowledged_at_s": "received_at_s"})
    receipts = receipts.sort_values(["partition", "offset"])
    receipts["received_at_s"] = receipts.groupby("partition").received_at_s.cummax()  # a log is read in its order
    receipts["consumer"] = receipts.partition % 3
    while_out = receipts.received_at_s.between(fault_at, fault_at + reassigned_s) & bool(hit)
    receipts.loc[while_out, "received_at_s"] = fault_at + reassigned_s
    in_fault = receipts.received_at_s.between(fault_at, heal_at)
    for k, region in enumerate(REGIONS):  # partitions of consumers that are hit go to the next one
        if region in hit:
            survivors = [n for n, other in enumerate(REGIONS) if other not in hit]
            receipts.loc[in_fault & (receipts.consumer == k), "consumer"] = survivors[0] if survivors else k
    receipts["received_at_s"] += 0.03
    receipts = receipts.sort_values(["received_at_s", "partition", "offset"], kind="stable").reset_index(drop=True)
    receipts = receipts.drop(receipts.index[(receipts.producer == 1) & (receipts.partition == 4)][3 : 3 + undelivered])
    again = receipts[(receipts.producer == 2) & (receipts.partition == 5)].head(reread)
    receipts = pd.concat([receipts, again.assign(received_at_s=heal_at + 0.5)], ignore_index=True)
    own = receipts.index[(receipts.producer == 0) & (receipts.partition == 3)][4 : 4 + 2 * n_damaged]
    if damage == "drop":
        receipts = receipts.drop(own[::2])
    elif damage == "duplicate":
        receipts = pd.concat([receipts, receipts.loc[own[::2]]], ignore_index=True)
    elif damage == "reorder":
        one, other = receipts.loc[own[::2]].copy(), receipts.loc[own[1::2]].copy()
        names = ["sequence", "offset"]
        receipts.loc[own[::2], names] = other[names].to_numpy()
        receipts.loc[own[1::2], names] = one[names].to_numpy()
    elif damage == "alter":
        receipts["producer"] = receipts.producer.astype("Int64")
        receipts.loc[own[::2], "damaged"] = True
        receipts.loc[own[::2], "producer"] = pd.NA
    return receipts.reset_index(drop=True)


def _cluster_samples(times, hit, detected_s, elected_s, healed_s, leaders_back_s, interval_s):
    began, fault_at, heal_at, ended = times
    gone = {REGIONS.index(region) + 1 for region in hit}
    left = [broker for broker in (1, 2, 3) if broker not in gone]
    for region in (each for each in REGIONS if each not in hit):
        at = began
        while at < ended:
            for partition in range(PARTITIONS):
                leader, isr = partition % 3 + 1, [1, 2, 3]
                if gone and left and fault_at + detected_s <= at < heal_at + healed_s:
                    isr = left
                due = detected_s + (elected_s - detected_s) * partition / (PARTITIONS - 1)
                back = ended if leaders_back_s is None else heal_at + leaders_back_s
                if leader in gone and left and fault_at + due <= at < back:
                    leader = left[partition % len(left)]
                yield {
                    "region": region, "at_s": at, "took_s": 0.05, "node_id": left[0] if left else 1,
                    "partition": partition, "leader": leader, "isr": ",".join(map(str, isr)), "n_isr": len(isr),
                    "error": None,
                }  # fmt: skip
            at += interval_s


def _group_samples(times, hit, reassigned_s, interval_s):
    began, fault_at, heal_at, ended = times
    watcher = next((region for region in REGIONS if region not in hit), REGIONS[0])
    at = began
    while at < ended:
        out = bool(hit) and fault_at + reassigned_s <= at < heal_at + 1
        for k, region in enumerate(REGIONS):
            if out and region in hit:
                continue
            share = PARTITIONS // (3 - len(hit)) if out and len(hit) < 3 else PARTITIONS // 3
            yield {
                "region": watcher, "at_s": at, "group": "g", "state": "Stable", "member": f"m{k}",
                "client_region": region, "n_partitions": share, "error": None,
            }  # fmt: skip
        at += interval_s


def together(episodes):
    """Tables out of the rows of several episodes."""
    names = dict.fromkeys(name for each in episodes for name in each)
    found = {name: pd.DataFrame([row for each in episodes for row in each.get(name, ())]) for name in names}
    if found["fault_errors"].empty:
        found["fault_errors"] = pd.DataFrame(columns=["run_id", "test_id", "attempt", "role", "client", "at_s", "kind"])
    for name in ("fault_records", "fault_receipts", "fault_log"):
        whole = {column: "Int64" for column in ("producer", "sequence", "partition", "offset") if column in found[name]}
        found[name] = found[name].astype(whole)
    return found


def campaign(repeats=3, seed=None):
    """A whole campaign: a cut under acks=all and acks=1, two regions, no fault, and what is done to the checker."""
    made, ordinal = [], 0
    for block in range(1, repeats + 1):
        shift = 0.2 * block
        for arguments in (
            {"setting": "cut", "outage_s": 3 + shift, "reread": 40 + block},
            {"setting": "cut acks 1", "acks": "1", "outage_s": 0.1, "lost": 9 * block, "doubled": 3, "swapped_log": 2},
            {"setting": "kill", "fault": "kill", "outage_s": 2.5 + shift, "leaders_back_s": 4.0},
            {"setting": "two regions", "at": "+".join(REGIONS[:2]), "regions": ",".join(REGIONS[:2]), "outage_s": 11.0},
        ):  # fmt: skip
            ordinal += 1
            made.append(episode(ordinal, block=block, **arguments))
    for damage in ("drop", "duplicate", "reorder", "alter"):
        ordinal += 1
        made.append(episode(ordinal, f"planted {damage}", fault="none", at="", damage=damage))
    return together(made)
