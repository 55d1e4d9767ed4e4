"""
Exchange requests and answers between a lab and its supervisor over a socket pair, as JSON objects, one per line.

A request is {"id": n, "verb": ..., ...}; the answer is {"id": n, "result": ...} or {"id": n, "error": ...}. Each
request starts with an empty line, in case the previous request was cut off; empty lines are ignored.
"""

import itertools
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from wanbench.errors import LabError


class Client:
    """The lab's end of the socket pair. Thread-safe: one request at a time."""

    def __init__(self, end: socket.socket):
        self._end, self._lock, self._ids, self._rest = end, threading.Lock(), itertools.count(1), b""

    def ask(self, verb: str, *, timeout_s: float = 30.0, **arguments: object) -> Any:
        """
        Send a request and return its result; raise LabError if the supervisor refuses, has ended, or does not answer.
        """
        with self._lock:
            number = next(self._ids)
            request = f"\n{json.dumps({'id': number, 'verb': verb, **arguments})}\n"
            deadline = time.monotonic() + timeout_s
            try:
                self._end.settimeout(timeout_s)
                self._end.sendall(request.encode())
                while True:
                    answer = json.loads(self._line(deadline))
                    if answer.get("id") == number:
                        break
            except TimeoutError:
                raise LabError(f"the lab's supervisor did not answer {verb!r} within {timeout_s:g} s.") from None
            except (OSError, EOFError) as error:
                ended = f"the lab's supervisor ended during the request {verb!r} ({error})"
                raise LabError(f"{ended}. What was measured is kept: start again.") from None
        if "error" in answer:
            raise LabError(f"the lab's supervisor refused {verb!r}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """Close the socket, which ends the supervisor."""
        self._end.close()

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._end.settimeout(left)
            more = self._end.recv(1 << 20)
            if not more:
                raise EOFError("it closed the connection")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class Server:
    """
    The supervisor's end of the socket pair. `verbs` maps each verb to a function that takes the request's arguments and
    returns a value in JSON types. If the function raises an exception, the exception is sent as the answer.
    """

    def __init__(self, end: socket.socket, verbs: Mapping[str, Callable[..., object]]):
        self._end, self._verbs, self._received = end, verbs, b""
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def ready(self) -> None:
        """Read and answer pending requests; raise EOFError if the lab has closed the socket."""
        try:
            more = self._end.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError as error:
            raise EOFError(str(error)) from None
        if not more:
            raise EOFError("the lab is gone")
        *lines, self._received = (self._received + more).split(b"\n")
        for line in filter(None, lines):
            self._send(self.answer(line))

    def answer(self, line: bytes) -> dict[str, Any]:
        """Return the answer to one request."""
        number = None
        try:
            request = json.loads(line)
            number = request.pop("id", None)
            verb = request.pop("verb", None)
            if verb not in self._verbs:
                return {"id": number, "error": f"unknown verb {verb!r}; known are {', '.join(self._verbs)}"}
            return {"id": number, "result": self._verbs[verb](**request)}
        except Exception as error:
            return {"id": number, "error": f"{type(error).__name__}: {error}"}

    def _send(self, answer: Mapping[str, object]) -> None:
        # The lab reads each answer before its next request, so this waits only if the lab's process is stopped.
        data = memoryview((json.dumps(answer) + "\n").encode())
        while data:
            try:
                data = data[self._end.send(data) :]
            except BlockingIOError:
                if not select.select((), (self._end,), (), 5.0)[1]:
                    raise EOFError("the lab does not read its answers") from None
            except OSError as error:
                raise EOFError(str(error)) from None
