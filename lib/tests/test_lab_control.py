"""How a lab and its supervisor talk: requests, answers, refusals, silence."""

import json
import socket
import threading

import pytest

from wanbench.errors import LabError
from wanbench.measure.links.control import Client, Server


def refuse():
    raise ValueError("not like this")


VERBS = {"double": lambda number: number * 2, "refuse": refuse, "repeat": lambda text: text}


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    theirs_copy = theirs.dup()
    server = Server(theirs, VERBS)

    def serve():
        try:
            while True:
                theirs_copy.setblocking(True)
                if not theirs_copy.recv(1, socket.MSG_PEEK):
                    return
                theirs_copy.setblocking(False)
                server.ready()
        except (EOFError, OSError):
            return

    thread = threading.Thread(target=serve)
    thread.start()
    client = Client(ours)
    yield client, ours
    client.close()
    thread.join()
    theirs.close()
    theirs_copy.close()


def test_an_answer_is_that_of_the_verb(pair):
    assert pair[0].ask("double", number=21) == 42


def test_a_refusal_says_why_and_ends_nothing(pair):
    client, _ = pair
    with pytest.raises(LabError, match="refused 'refuse': ValueError: not like this"):
        client.ask("refuse")
    with pytest.raises(LabError, match="unknown verb 'fly'; known are double, refuse, repeat"):
        client.ask("fly")
    with pytest.raises(LabError, match="TypeError"):
        client.ask("double", wrong=1)
    assert client.ask("double", number=2) == 4


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"id": 1}', b"null"])
def test_junk_is_answered(line):
    answer = Server(socket.socketpair()[0], VERBS).answer(line)
    assert "error" in answer
    json.dumps(answer)


def test_an_answer_that_came_too_late_is_not_taken_for_the_next(pair):
    client, ours = pair
    ours.sendall(b'{"id": 0, "verb": "double", "number": 1}\n')
    assert client.ask("double", number=5) == 10


def test_a_request_that_was_interrupted_half_way_does_not_spoil_the_next(pair):
    client, ours = pair
    ours.sendall(b'\n{"id": 1, "verb": "dou')
    assert client.ask("double", number=5) == 10


def test_many_threads_get_each_their_own_answer(pair):
    client, _ = pair
    got = {}

    def ask(k):
        got[k] = [client.ask("double", number=k * 100 + j) for j in range(50)]

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {k: [(k * 100 + j) * 2 for j in range(50)] for k in range(10)}


def test_an_answer_longer_than_any_buffer_arrives(pair):
    text = "x" * 3_000_000
    assert pair[0].ask("repeat", text=text) == text


def test_a_supervisor_that_is_gone_or_silent_is_an_error():
    ours, theirs = socket.socketpair()
    client = Client(ours)
    with pytest.raises(LabError, match=r"did not answer 'double' within 0\.05 s"):
        client.ask("double", timeout_s=0.05)
    theirs.close()
    with pytest.raises(LabError, match="ended during"):
        client.ask("double")
    client.close()
