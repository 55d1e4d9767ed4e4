"""
Exchange time stamps over UDP to measure a clock offset; needs only plain Python on the host.

    python clock_echo.py answer ADDRESS PORT
    python clock_echo.py ask ADDRESS PORT EXCHANGES INTERVAL_S

For each answer, the asking side prints a JSON list of times in ns: sent here, received there, answered there, received
here.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

QUESTION, ANSWER = struct.Struct(">Qq"), struct.Struct(">Qqqq")
PATIENCE_S = 2.0  # timeout for an answer, longer than any path on Earth
FIRST_TRIES = 2  # if this many first requests are unanswered, no program listens or a firewall blocks the path


def answer(address: str, port: int) -> None:
    """Answer requests until the process is stopped."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((address, port))
        print("listening", flush=True)
        while True:
            data, asker = here.recvfrom(64)
            received_ns = time.time_ns()
            if len(data) == QUESTION.size:
                here.sendto(ANSWER.pack(*QUESTION.unpack(data), received_ns, time.time_ns()), asker)


def ask(address: str, port: int, exchanges: int, interval_s: float) -> int:
    """Send `exchanges` requests; return the exit status, which is 1 if no request was answered."""
    answered = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.connect((address, port))
        here.settimeout(PATIENCE_S)
        for number in range(exchanges):
            here.send(QUESTION.pack(number, time.time_ns()))
            try:
                while True:
                    data = here.recv(64)
                    back_ns = time.time_ns()
                    if len(data) == ANSWER.size and ANSWER.unpack(data)[0] == number:
                        break
            except TimeoutError:
                if number + 1 >= FIRST_TRIES and not answered:
                    break
                continue
            print(json.dumps([*ANSWER.unpack(data)[1:], back_ns]), flush=True)
            answered += 1
            time.sleep(interval_s)
    if not answered:
        print(f"no answer from {address}, UDP port {port}", file=sys.stderr)
    return 0 if answered else 1


if __name__ == "__main__":
    role, address, port, *rest = sys.argv[1:]
    if role == "answer":
        answer(address, int(port))
    sys.exit(ask(address, int(port), int(rest[0]), float(rest[1])))
