"""
Read ping results of RIPE Atlas in JSON, as a list or one per line, into table echoes.

`from_region` is "ripe-atlas:" and the probe's number, and `to_region` the target. Each result is one ping. A result has
only the time of its start, in whole seconds, so only the first reply has a time. A late reply has no RTT. A result
without echoes (unknown host, no network) is a row of table unread.
"""

from wanbench.errors import RawDataError

from .content import Source
from .json_values import Members, read_objects
from .rows import Row, Rows, fitting

WANTED = "ping results of RIPE Atlas in JSON, as its API gives them"


def read(source: Source) -> dict[str, Rows]:
    """
    Return table "echoes", with regions, and in "unread" the error of each result that cannot be read.

    Raise RawDataError if an object is not a ping result, or if no result can be read.
    """
    rows, ends, unread = [], [], []
    results = read_objects(source, WANTED)
    for number, result in enumerate(results):
        if result.text("type") != "ping" or "prb_id" not in result.values:
            result.refuse(", ".join(map(str, result.values)), f"{WANTED}, with type ping and prb_id")
        try:
            echoes = _echoes(result, number)
        except RawDataError as error:
            unread.append(error)
            continue
        rows += echoes
        end = f"ripe-atlas:{result.count('prb_id')}", result.text("dst_name") or result.text("dst_addr")
        ends += [end] * len(echoes)
    if not rows:
        raise unread[0]
    frame = fitting(results[0].path, "echoes", rows)
    frame = frame.assign(from_region=[one for one, _ in ends], to_region=[other for _, other in ends])
    return {"echoes": frame} | ({"unread": [error.row() for error in unread]} if unread else {})


def _echoes(result: Members, number: int) -> list[Row]:
    rows: list[Row] = []
    n_lost = n_answered = n_late = 0
    target, address = result.text("dst_name"), result.text("dst_addr")
    for echo in result.list("result"):
        rtt_ms, late = echo.number("rtt"), echo.count("late")
        if late is not None:  # the reply to an earlier echo
            first = [row for row in rows if not row["duplicate"]]
            if not 1 <= late <= len(first):
                echo.refuse(f"{echo.where}.late = {late}", f"a number from 1 to {len(first)}")
            first[-late] |= {"lost": False, "error": "a late reply"}
            n_late += 1
            continue
        is_again = bool(echo.count("dup"))
        if is_again and not rows:
            echo.refuse(f"{echo.where}.dup", "a first reply before its duplicate")
        sequence = rows[-1]["sequence"] + (not is_again) if rows else 1
        row = {"ping": number, "target": target or address, "sequence": sequence, "duplicate": is_again}
        row |= {"rtt_ms": rtt_ms or None, "lost": rtt_ms is None, "error": echo.text("error")}
        if rtt_ms is not None:
            row |= {"ttl": echo.count("ttl") or result.count("ttl"), "responder": echo.text("src_addr") or address}
            n_answered += not is_again
        else:
            n_lost += 1
        rows.append(row)
    sent, received = result.count("sent"), result.count("rcvd")
    n_sent = n_answered + n_lost
    if not rows or sent not in (n_sent, None) or received not in (None, n_answered, n_answered + n_late):
        shown = next((row["error"] for row in rows if row["error"]), f"sent {sent}, rcvd {received}")
        expected = f"as many results as were sent and received: {n_answered} of {n_sent}"
        raise RawDataError(result.path, None, f"result {number}: {shown}", expected)
    if (at_s := result.number("timestamp", most=2**33)) and rows[0]["rtt_ms"]:
        rows[0]["received_at_s"] = at_s + rows[0]["rtt_ms"] / 1000
    return rows
