"""Who may talk to a cluster: certificates that fit addresses, secrets that never show, files that only we may read."""

import json
import pickle
import shutil
import ssl
import subprocess
import traceback
from pathlib import Path

import javaproperties
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from sasl_plain import SaslPlain

from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import (
    Access,
    ClientFiles,
    Secret,
    from_environment,
    may_hold_secret,
    put_private,
    refuse_secrets,
    without_secrets,
)
from wanbench.measure.kafka.external import checked_addresses
from wanbench.measure.kafka.security import Tls, authority, identity, identity_pem, security
from wanbench.measure.labs.base import Completed, Host

WORD = 'correct "horse" \\ battery é'


class Here(Host):
    """This machine, with a scratch folder; every command that ran is in `ran`."""

    name, region, address = "here/0", "here", "127.0.0.1"

    def __init__(self, folder):
        self._folder, self.ran = folder, []

    @property
    def scratch(self):
        return str(self._folder)

    def run(self, command, *, timeout_s, ok=(0,)):
        self.ran.append(list(command))
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
        return Completed(tuple(command), done.returncode, done.stdout, done.stderr, "", "")

    def start(self, command):
        raise NotImplementedError

    def put(self, source, target):
        shutil.copyfile(source, target)

    get = put


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path)


def properties(path):
    """A properties file as Java reads it."""
    with open(path) as file:
        return javaproperties.load(file)


def handshake(server_settings, client_keywords, address):
    """Whether a Python client gets through TLS to a server with a broker's files; raises what either side says."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(server_settings["ssl.keystore.location"])
    server.load_verify_locations(server_settings["ssl.truststore.location"])
    if server_settings["ssl.client.auth"] == "required":
        server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(client_keywords["ssl_cafile"])
    if "ssl_certfile" in client_keywords:
        client.load_cert_chain(client_keywords["ssl_certfile"])
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname=address), server.wrap_bio(there, back, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].version()


def keywords(here, access):
    return json.loads(Path(ClientFiles("127.0.0.1:9092", access).python(here)).read_text())


def test_tls_clients_know_brokers_by_their_address(here):
    tls = security("tls")
    assert tls.protocols == {"CLIENT": "SSL", "BROKER": "SSL", "CONTROLLER": "SSL"}
    settings, client = tls.broker_settings(here), keywords(here, tls.access())
    assert settings["ssl.client.auth"] == "none"
    assert "ssl_certfile" not in client
    assert handshake(settings, client, "127.0.0.1") == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match=r"IP address mismatch"):
        handshake(settings, client, "127.0.0.2")


def test_mtls_brokers_want_a_certificate_of_their_authority(here):
    settings = security("mtls").broker_settings(here)
    assert settings["ssl.client.auth"] == "required"


def test_mtls_lets_in_whom_the_authority_knows_and_nobody_else(here):
    mtls = Tls(mutual=True)
    settings, client = mtls.broker_settings(here), keywords(here, mtls.access())
    assert handshake(settings, client, "127.0.0.1") == "TLSv1.3"
    without = {name: word for name, word in client.items() if name != "ssl_certfile"}
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(settings, without, "127.0.0.1")
    stranger = trustme.CA().issue_cert("client", common_name="client")
    other = {**client, "ssl_certfile": put_private(here, "other.pem", identity_pem(stranger))}
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(settings, other, "127.0.0.1")


def test_two_clusters_do_not_trust_each_other(here):
    settings = Tls().broker_settings(here)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(settings, keywords(here, Tls().access()), "127.0.0.1")


def test_keys_are_pkcs8_as_java_wants_them(here):
    settings = Tls().broker_settings(here)
    assert Path(settings["ssl.keystore.location"]).read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert settings["ssl.keystore.type"] == settings["ssl.truststore.type"] == "PEM"


def test_all_files_are_for_their_owner_only_and_go(here):
    files = ClientFiles("127.0.0.1:9092", Tls(mutual=True).access())
    SaslPlain({"ada": WORD}, encrypted=True).broker_settings(here)
    before = set(here._folder.iterdir())
    assert files.java(here) == files.java(here)
    assert files.python(here)
    made = set(here._folder.iterdir())
    assert len(made - before) == 4
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    files.remove()
    assert set(here._folder.iterdir()) == before
    assert Path(files.java(here)).is_file()


def test_a_private_file_is_whole_replaced_and_no_word_of_a_command(here):
    path = put_private(here, "a.txt", WORD)
    assert put_private(here, "a.txt", WORD * 2) == path
    assert Path(path).read_text() == WORD * 2
    assert [each.name for each in here._folder.iterdir()] == ["a.txt"]
    assert "horse" not in str(here.ran)


def test_plain_clients_need_nothing(here):
    files = ClientFiles("127.0.0.1:9092", security("plain").access())
    assert files.java(here) is None
    assert json.loads(Path(files.python(here)).read_text()) == {"bootstrap_servers": ["127.0.0.1:9092"]}
    more = ClientFiles("127.0.0.1:9092", Access(), {"client.rack": "here"})
    assert properties(more.java(here)) == {"client.rack": "here"}


def test_java_and_python_are_told_the_same_password(here):
    files = ClientFiles("b:1", SaslPlain({"ada": WORD}).access())
    written = properties(files.java(here))
    assert written["security.protocol"] == "SASL_PLAINTEXT"
    assert written["sasl.mechanism"] == "PLAIN"
    quoted = WORD.replace("\\", "\\\\").replace('"', '\\"')
    assert written["sasl.jaas.config"].endswith(f'PlainLoginModule required username="ada" password="{quoted}";')
    assert json.loads(Path(files.python(here)).read_text())["sasl_plain_password"] == WORD


def test_scram_names_its_own_module(here):
    access = Access("SASL_SSL", "SCRAM-SHA-512", "ada", Secret(WORD, "X"))
    written = properties(ClientFiles("b:1", access).java(here))
    assert written["sasl.jaas.config"].startswith("org.apache.kafka.common.security.scram.ScramLoginModule ")


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"protocol": "TLS"}, "'PLAINTEXT', 'SSL'"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "'PLAIN', 'SCRAM-SHA-256'"),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN", "user": "ada"}, "needs a user and a password"),
        ({"protocol": "SSL", "user": "ada"}, "SASL_SSL does"),
        ({"protocol": "PLAINTEXT", "authority_pem": b"x"}, "takes no certificates"),
        (
            {"protocol": "SASL_SSL", "mechanism": "PLAIN", "user": "a\nb", "password": Secret("x", "X")},
            "cannot be printed",
        ),
    ],
)
def test_access_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        Access(**wrong)


def test_a_secret_shows_its_source_only():
    secret = Secret(WORD, "KAFKA_PASSWORD")
    access = Access("SASL_SSL", "PLAIN", "ada", secret)
    shown = f"{secret} {secret!r} {[secret]} {access!r} {access.label} {ClientFiles('b:1', access)!r}"
    assert "horse" not in shown
    assert "KAFKA_PASSWORD" in shown
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(access)


def test_a_secret_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("OUR_PASSWORD", WORD)
    assert from_environment("password_from", "OUR_PASSWORD").reveal() == WORD


@pytest.mark.parametrize("given", ["NOT_SET_HERE", "hunter2", "hunter 2!", 7, ""])
def test_what_was_given_for_a_variable_is_not_repeated(given):
    with pytest.raises(ParameterError, match="password_from") as raised:
        from_environment("password_from", given)
    assert not given or str(given) not in "".join(traceback.format_exception_only(raised.value))


def test_settings_with_secrets_are_refused_by_name_and_hidden_when_shown():
    settings = {"linger.ms": 5, "sasl.jaas.config": WORD, "ssl.key.password": WORD}
    with pytest.raises(ParameterError, match=r"sasl\.jaas\.config, ssl\.key\.password") as raised:
        refuse_secrets(settings, "password_from")
    assert "horse" not in str(raised.value) + str(without_secrets(settings))
    assert without_secrets(settings)["linger.ms"] == 5
    assert not may_hold_secret("key.serializer")
    for name in ("basic.auth.user.info", "bearer.auth.apikey", "ssl.key.pem", "some.api.key", "key.passphrase"):
        assert may_hold_secret(name), name


@pytest.mark.parametrize("text", ["a", "a:0", "a:70000", "a:9092,", "ada:horse@a:9092", "a b:1", None, "", "a:1 b:2"])
def test_bootstrap_that_is_none_is_refused_and_not_repeated(text):
    with pytest.raises(ParameterError, match="bootstrap") as raised:
        checked_addresses(text)
    assert "horse" not in str(raised.value)


@pytest.fixture
def brought(tmp_path):
    """Certificates and keys as a user has them: authority, certificate, key, the same key encrypted, a stranger's."""
    ours, theirs = trustme.CA(), trustme.CA()
    issued, other = ours.issue_cert("client"), theirs.issue_cert("client")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"horse")
    )
    contents = {
        "authority": ours.cert_pem.bytes(),
        "certificate": issued.cert_chain_pems[0].bytes(),
        "key": issued.private_key_pem.bytes(),
        "locked": locked,
        "other": other.private_key_pem.bytes(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("key, password", [("key", None), ("locked", Secret("horse", "X"))])
def test_keys_that_users_bring_come_out_as_java_wants_them(brought, key, password):
    pem = identity(brought / "certificate", brought / key, password)
    assert pem.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert pem.endswith((brought / "certificate").read_bytes())
    assert authority(brought / "authority") == (brought / "authority").read_bytes()


@pytest.mark.parametrize(
    "certificate, key, password, message",
    [
        ("certificate", "locked", None, "can be read without a password"),
        ("certificate", "locked", Secret("hoarse", "X"), "can be read with <secret from X>"),
        ("certificate", "other", None, "does not belong"),
        ("key", "key", None, "no certificates"),
        ("certificate", "certificate", None, "no private key"),
        ("certificate", "nowhere", None, "cannot be read"),
    ],
)
def test_keys_that_do_not_fit_are_refused(brought, certificate, key, password, message):
    with pytest.raises(ParameterError, match=message) as raised:
        identity(brought / certificate, brought / key, password)
    assert "hoarse" not in str(raised.value)


def test_security_has_three_words():
    assert [security(word).kind for word in ("plain", "tls", "mtls")] == ["plain", "tls", "mtls"]
    ours = SaslPlain({"ada": WORD})
    assert security(ours) is ours
    assert "horse" not in json.dumps(ours.describe()) + repr(ours)
    with pytest.raises(ParameterError, match="'plain', 'tls', 'mtls'"):
        security("ssl")


def test_users_who_are_none_are_refused():
    with pytest.raises(ParameterError, match="super users"):
        SaslPlain({"ada": WORD}, ["bob"])
    with pytest.raises(ParameterError, match="letters"):
        SaslPlain({'a"b': WORD})
    with pytest.raises(ParameterError, match="no user"):
        SaslPlain({"ada": WORD}).access("bob")
