"""Logs of ping whose rows are known."""

import random
from pathlib import Path

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest import ping
from wanbench.read.ingest.rows import core as core_columns

FOLDER = Path(__file__).parent / "samples" / "ping"
HEADER = b"PING 198.51.100.7 (198.51.100.7) 56(84) bytes of data.\n"


def a_log(echoes, seed, *, first=1, stamped=True, footer=True, name=False, lateness=40):
    """A log with losses, silences, duplicates, late replies and reports, and the rows that it must give."""
    rng = random.Random(seed)
    lines, rows = [], []
    loss = rng.choice([0, 0.001, 0.05, 0.3])

    def say(time, text):
        lines.append((time, f"[{1.7e9 + time:.6f}] {text}" if stamped else text))
        return 1.7e9 + time if stamped else float("nan")

    for echo in range(first, first + echoes):
        sent, printed = echo * 0.01, echo % 65536
        who = rng.choice(["198.51.100.7"] * 9 + ["198.51.100.8"])
        shown = f"host.example.org ({who})" if name else who
        ttl = rng.choice([57] * 30 + [56, 255])
        reply = f"64 bytes from {shown}: icmp_seq={printed} ttl={ttl} time="
        kind = rng.random()
        row = {
            "ping": 0,
            "target": "198.51.100.7",
            "sequence": echo,
            "lost": False,
            "duplicate": False,
            "ttl": ttl,
            "reply_bytes": 64,
            "responder": who,
        }
        unknown = {"ttl": None, "reply_bytes": None, "responder": None}
        if kind < loss:
            row |= unknown | {"lost": True}
            if rng.random() < 0.4:
                at = say(sent + 0.0101, f"no answer yet for icmp_seq={printed}")
                row |= {"error": "no answer yet", "received_at_s": at}
            elif rng.random() < 0.2:
                at = say(sent + 0.002, f"From 192.0.2.1 icmp_seq={printed} Destination Host Unreachable")
                row |= {"error": "Destination Host Unreachable", "received_at_s": at, "responder": "192.0.2.1"}
            rows.append(row)
            continue
        rtt_ms = round(rng.uniform(0.05, 9), 3)
        if kind < loss + 0.02:
            say(sent + 0.0101, f"no answer yet for icmp_seq={printed}")
            rtt_ms = float(round(rng.uniform(11, lateness * 10)))
            row["error"] = "no answer yet"
        row["rtt_ms"] = rtt_ms
        row["received_at_s"] = say(sent + rtt_ms / 1000, f"{reply}{rtt_ms:g} ms")
        rows.append(row)
        for _ in range(rng.choice([0] * 97 + [1, 1, 2])):
            rtt_ms = float(round(rtt_ms + rng.uniform(1, lateness * 10)))
            at = say(sent + rtt_ms / 1000, f"{reply}{rtt_ms:g} ms (DUP!)")
            rows.append(row | {"rtt_ms": rtt_ms, "received_at_s": at, "duplicate": True, "error": None})
    lines.sort(key=lambda line: line[0])
    log = HEADER + "".join(text + "\n" for _, text in lines).encode()
    truth = pd.DataFrame(rows, columns=[column.name for column in core_columns("echoes")])
    if footer:
        received = int((~truth.lost & ~truth.duplicate).sum())
        again = f"+{truth.duplicate.sum()} duplicates, " if truth.duplicate.any() else ""
        share = f"{100 * (echoes - received) / echoes:g}%"
        counts = f"{echoes} packets transmitted, {received} received, {again}{share} packet loss, time 9ms"
        log += f"\n--- 198.51.100.7 ping statistics ---\n{counts}\n".encode()
    else:
        shown = {int(text.split("icmp_seq=")[1].split()[0]) for _, text in lines}
        truth = truth[truth.sequence <= max(shown, default=first - 1)]
    truth = pd.DataFrame({column.name: truth[column.name].astype(column.dtype) for column in core_columns("echoes")})
    return log, truth.reset_index(drop=True)


def outcome(source, **options):
    """The rows, or the message of the refusal."""
    try:
        return ping.read(source, **options)["echoes"].to_pylist()
    except RawDataError as error:
        return str(error)
