"""Original files: found on this machine by name and hash, else fetched, here from a server on the loopback."""

import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import published_studies
import pytest

from wanbench import folders
from wanbench.errors import ParameterError, RawDataError, WanbenchError
from wanbench.read.importers import originals

CONTENT = b"a,b\n1,2\n"
HASH = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Answers every request with `status` and `content`, and counts them."""

    def __init__(self):
        self.status, self.content, self.n = 200, CONTENT, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.n += 1
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.content)))
                self.end_headers()
                self.wfile.write(outer.content)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/a.csv"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The server, with a registry of one file on it, and a checkout whose folders are empty."""
    server = Server()
    listed = tmp_path / "original_files.csv"
    header = originals.FILE.read_text().splitlines()[0]
    listed.write_text(f"{header}\nmine,a.csv,My file,{server.address},commit 1,{HASH},{len(CONTENT)},CC0-1.0\n")
    monkeypatch.setattr(originals, "FILE", listed)
    (tmp_path / "checkout" / folders.ROOT_MARK).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.delenv(folders.DATA_VARIABLE, raising=False)
    monkeypatch.delenv(published_studies.DOWNLOADS_VARIABLE, raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.stop()


def test_fetched_once_and_kept(server, tmp_path):
    assert published_studies.available("mine") is None
    path = published_studies.fetch("mine")
    assert path == tmp_path / "checkout/data/external/a.csv" and path.read_bytes() == CONTENT
    assert published_studies.fetch("mine") == published_studies.available("mine") == path and server.n == 1
    assert [each.name for each in path.parent.iterdir()] == ["a.csv"]


def test_a_folder_of_ones_own(server, tmp_path, monkeypatch):
    monkeypatch.setenv(published_studies.DOWNLOADS_VARIABLE, str(tmp_path / "kept"))
    assert published_studies.fetch("mine") == tmp_path / "kept/a.csv"
    assert published_studies.fetch("mine", tmp_path / "other") == tmp_path / "other/a.csv"


def test_the_folder_next_to_the_checkout_is_looked_into_first(server, tmp_path):
    deep = tmp_path / "shared/data/one/two"
    deep.mkdir(parents=True)
    (tmp_path / "shared/data/a.csv").write_bytes(b"b,a\n1,2\n")  # same name and length, another file
    (deep / "a.csv").write_bytes(CONTENT)
    assert published_studies.fetch("mine") == deep / "a.csv" and server.n == 0


def test_another_file_at_the_address(server, tmp_path):
    server.content = b"b,a\n1,2\n"
    other = hashlib.sha256(server.content).hexdigest()
    with pytest.raises(RawDataError) as caught:
        published_studies.fetch("mine")
    assert HASH in str(caught.value) and other in str(caught.value) and server.address in str(caught.value)
    assert list((tmp_path / "checkout/data/external").iterdir()) == [] and server.n == 1


def test_another_file_put_there_by_hand(server, tmp_path):
    path = tmp_path / "checkout/data/external/a.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mistaken")
    with pytest.raises(RawDataError, match=f"{HASH}, found 'SHA-256 {hashlib.sha256(b'mistaken').hexdigest()}'"):
        published_studies.fetch("mine")
    assert path.read_bytes() == b"mistaken" and server.n == 0, "what somebody put there stays"


@pytest.mark.parametrize("how", ["down", "missing", "broken"])
def test_nothing_there(server, tmp_path, how, monkeypatch):
    if how == "down":
        server.stop()
        monkeypatch.setattr(server, "stop", lambda: None)
    server.status = {"missing": 404, "broken": 503}.get(how, 200)
    with pytest.raises(published_studies.NotFetchedError) as caught:
        published_studies.fetch("mine")
    message = str(caught.value)
    for part in (server.address, "data/external as a.csv", HASH, "8 bytes"):
        assert part in message
    assert isinstance(caught.value, WanbenchError | OSError) and server.n == (how != "down"), "one try"
    assert not list((tmp_path / "checkout/data/external").iterdir())


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(published_studies.NotFetchedError, match="by hand"):
        published_studies.fetch("mine", tmp_path / "file" / "below")


def test_an_unknown_name(server):
    for ask in (published_studies.fetch, published_studies.available):
        with pytest.raises(ParameterError, match="name of an original file is 'other'; allowed: 'mine'"):
            ask("other")


def test_the_registry():
    listed = pd.DataFrame(originals.registry().values())
    assert listed.name.is_unique and listed.sha256.str.fullmatch("[0-9a-f]{64}").all()
    assert listed.address.str.fullmatch(r"https://(raw\.githubusercontent|github)\.com/\S+").all()
    for entry in listed.itertuples():
        commit = re.search(r"/([0-9a-f]{7,40})/", entry.address)[1]
        assert f"commit {commit} of" in entry.version and (len(commit) == 40 or "abbreviated" in entry.version)
    assert listed.licence.eq("Apache-2.0").all() and listed.notna().all(axis=None)
    assert listed.file.map(lambda file: Path(file).name).is_unique


def test_what_is_on_this_machine_is_what_was_published():
    for original in originals.registry().values():
        path = published_studies.available(original["name"])
        if path is not None:
            assert path.stat().st_size == original["bytes"]
    assert published_studies.TIMEOUT_S <= 30
