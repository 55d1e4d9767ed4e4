"""
Scrapes one Prometheus exporter at regular times, and prints its answers. Runs on a broker's host with nothing but
Python: `python3 scrape.py <settings in JSON>` with url, interval_s, timeout_s, and about, which is printed. Started by
`wanbench.measure.experiments.sampling`; read by `wanbench.read.ingest.broker_metrics`.

The first line is `#scrapes` and JSON. Then each scrape is a line `#scrape` and JSON, the number of bytes that follow
in it, these bytes as they came, and a line's end. One that was not answered has an error and no bytes. On SIGTERM it
scrapes once more, unless it has just had an answer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request

LARGEST_BYTES = 64_000_000  # size limit of an answer: no exporter's is longer, and a longer one would fill the disk
LAST_S = 1.5  # how long the last scrape may take: a host kills a program two seconds after it asked it to end


class Ended(BaseException):
    """Told to end, while nothing was being written."""


class Ending:
    """Turns SIGTERM into `Ended`, at once while `may_raise`, else as soon as allowed."""

    def __init__(self):
        self.may_raise = self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _ask(self, *_):
        self.asked = True
        if self.may_raise:
            self.may_raise = False
            raise Ended

    def __enter__(self):
        self.may_raise = True
        if self.asked:
            self.may_raise = False
            raise Ended
        return self

    def __exit__(self, *_):
        self.may_raise = False


def fetch(url: str, timeout_s: float) -> bytes:
    """An exporter's answer; OSError or ValueError if there is none in time."""
    deadline, parts, size = time.monotonic() + timeout_s, [], 0
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout_s) as answer:
        while part := answer.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline or size > LARGEST_BYTES:
                raise TimeoutError(f"its answer was not complete after {size} bytes and {timeout_s:g} s")
    return b"".join(parts)


def scrape(url: str, timeout_s: float) -> tuple[dict, bytes]:
    """One scrape: time, duration, and the answer or the error."""
    at_s, began, answer, error = time.time(), time.monotonic(), b"", None
    try:
        answer = fetch(url, timeout_s)
    except Ended:
        error = "the scrape was asked to end before the answer came"
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"at_s": at_s, "took_s": time.monotonic() - began, "bytes": len(answer), "error": error}, answer


def write(word: str, about: dict, content: bytes | None = None) -> None:
    """Print a line of JSON, and its data."""
    data = memoryview(f"{word} {json.dumps(about)}\n".encode() + (b"" if content is None else content + b"\n"))
    while data:
        data = data[os.write(1, data) :]


def main(settings: dict) -> None:
    url, interval_s, timeout_s = settings["url"], settings["interval_s"], settings["timeout_s"]
    ending, latest = Ending(), None
    write("#scrapes", {"url": url, "interval_s": interval_s, **settings["about"]})
    due = time.monotonic()
    while not ending.asked:
        latest = None
        try:
            with ending:
                time.sleep(max(0.0, due - time.monotonic()))
                latest = scrape(url, timeout_s)
        except Ended:
            pass
        if latest is None:
            break
        write("#scrape", *latest)
        due += interval_s * max(1, -(-(time.monotonic() - due) // interval_s))
    if latest is None or latest[0]["error"]:
        write("#scrape", *scrape(url, LAST_S))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
