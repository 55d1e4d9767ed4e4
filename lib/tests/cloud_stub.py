"""What stand-ins for clouds on this machine share: one server for all, and drivers killed at one of their calls."""

import json
import os
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LOOK_ALIKE = (
    {"wanbench:owner": "eve"},
    {"wanbench:campaign": "02-pairs", "wanbench:expires": "2020-01-01T00:00:00Z"},
    {"wanbench-run": "1"},
    {"Wanbench:Run": "1"},
    {"Name": "wanbench:run"},
    {"wanbench:run": ""},
)
"""Tags of others, which resemble those of runs."""


class Current:
    """The stand-in of the moment, so that each test or kill has a new one at the same address."""

    cloud = None

    @staticmethod
    def answer(*asked):
        return Current.cloud.answer(*asked)


@contextmanager
def serve(cloud):
    """
    The address of a stand-in.

    `cloud.answer(verb, path, query, body)` returns status, JSON body (None: empty) and headers whose values are paths,
    or None if nothing is to be answered.
    """
    connections = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body leave together; else each body waits 40 ms until the head is acknowledged

        def setup(self):
            super().setup()
            connections.append(self.connection)

        def handle(self):
            with suppress(ConnectionError):  # a driver was killed
                super().handle()

        def _answer(self):
            asked = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            whole = len(body) == size  # not if a driver was killed
            told = cloud.answer(self.command, asked.path, asked.query, body.decode()) if whole else None
            if told is None:
                self.close_connection = True
                return
            status, answer, headers = told
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, f"http://{self.headers['Host']}{value}")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        for connection in connections:  # that their threads end
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()


def killed_at_call(client: type, number: int) -> None:
    """Have this process die without warning at this call of a cloud's client, counted from 1."""
    calls, told = [0], client._ask

    def counted(self, *arguments):
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return told(self, *arguments)

    client._ask = counted
