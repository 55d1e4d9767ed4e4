"""
Scrape a Prometheus exporter at regular times, and print its answers.

Needs only plain Python on the broker's host: `python3 scrape.py <settings in JSON>` with `url`, `interval_s`,
`timeout_s`, and `about`, which is printed. Started by `wanbench.measure.experiments.sampling`; read by
`wanbench.read.ingest.broker_metrics`.

The first line is `#scrapes` and JSON. Each scrape is then a line `#scrape` and JSON, which holds the length of the
answer in bytes, followed by the unchanged answer and a line end. An unanswered scrape has an error and no answer. On
SIGTERM the program scrapes once more, unless the latest scrape has just succeeded.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request
from typing import Any

LARGEST_BYTES = 64_000_000  # maximum size of an answer; larger ones would fill the disk, and no exporter sends them
LAST_S = 1.5  # timeout of the last scrape; a host kills a program two seconds after SIGTERM


class Ended(BaseException):
    """The program was asked to end while it was not writing."""


class Ending:
    """Raise `Ended` on SIGTERM: at once while `may_raise` is set, otherwise as soon as `may_raise` is set."""

    def __init__(self):
        self.may_raise = self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _ask(self, *_: object) -> None:
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

    def __exit__(self, *_: object) -> None:
        self.may_raise = False


def fetch(url: str, timeout_s: float) -> bytes:
    """Return an exporter's answer; raise OSError or ValueError if it is not complete in time."""
    deadline, parts, size = time.monotonic() + timeout_s, [], 0
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout_s) as answer:
        while part := answer.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline or size > LARGEST_BYTES:
                raise TimeoutError(f"its answer was not complete after {size} bytes and {timeout_s:g} s")
    return b"".join(parts)


def scrape(url: str, timeout_s: float) -> tuple[dict[str, Any], bytes]:
    """Scrape once; return a description (time, duration, length and error) and the answer."""
    at_s, began, answer, error = time.time(), time.monotonic(), b"", None
    try:
        answer = fetch(url, timeout_s)
    except Ended:
        error = "the scrape was asked to end before the answer came"
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"at_s": at_s, "took_s": time.monotonic() - began, "bytes": len(answer), "error": error}, answer


def write(word: str, about: dict[str, Any], content: bytes | None = None) -> None:
    """Print a word and a JSON object on one line, and then the exporter's answer `content`, if there is one."""
    data = memoryview(f"{word} {json.dumps(about)}\n".encode() + (b"" if content is None else content + b"\n"))
    while data:
        data = data[os.write(1, data) :]


def main(settings: dict[str, Any]) -> None:
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
