"""
Pin a version of Kafka, and make the class archive that makes nodes start faster.

    .venv/bin/python scripts/kafka_jars.py VERSION    pin another version of Kafka
    .venv/bin/python scripts/kafka_jars.py archive    make the class archive (called by scripts/kafka-jars.sh)

For the archive (Java's AppCDS), a broker is started on the loopback interface and a client uses it; Java 17 or newer
then dumps the loaded classes in a form that can be mapped into memory. The broker communicates with its controller by
TLS and with its client in plain text, so that the archive has the classes of both protocols. Java ignores an archive
that was made with another Java or other jars.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from wanbench.errors import ClusterError
from wanbench.files import replace_file
from wanbench.folders import kafka_jars
from wanbench.measure.kafka.java_commands import ARCHIVE, PROFILES, java_command, package_file, unavailable
from wanbench.measure.kafka.node import last_message
from wanbench.measure.kafka.security import Tls
from wanbench.measure.kafka.settings import defaults, properties
from wanbench.runs.raw import sha256

_ADDRESS = "127.0.0.1"
_PATIENCE_S = 120.0  # timeout of each step; a broker starts in a few seconds


def make_archive(jars: Path) -> Path:
    """
    Make the class archive next to the folder of jars and return its path; raise ClusterError, with the broker's last
    error, on failure.
    """
    archive = jars.parent / ARCHIVE
    with tempfile.TemporaryDirectory(prefix="wanbench-") as name:
        folder = Path(name)
        client, broker, controller = _free_ports(3)
        settings = {
            **defaults(1),
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{_ADDRESS}:{controller}",
            "inter.broker.listener.name": "BROKER",
            "listeners": ",".join(
                f"{listener}://{_ADDRESS}:{port}"
                for listener, port in (("CLIENT", client), ("BROKER", broker), ("CONTROLLER", controller))
            ),
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:SSL,CONTROLLER:SSL",
            **_certificates(folder),
            "log.dirs": f"{folder}/data",
        }
        (folder / "server.properties").write_text(properties(settings))
        (folder / "client.json").write_text(json.dumps({"bootstrap_servers": [f"{_ADDRESS}:{client}"]}))
        made = folder / ARCHIVE
        arguments = ["format", "-t", "W" * 22, "-c", f"{folder}/server.properties"]
        _run(folder, _java(jars, folder, "kafka.tools.StorageTool", arguments, []))
        flags = [f"-XX:ArchiveClassesAtExit={made}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        node = _start(folder, _java(jars, folder, "kafka.Kafka", [f"{folder}/server.properties"], flags))
        try:
            # The broker runs on this machine, not on a host of a lab, so this Python runs the check.
            readiness = [sys.executable, "-P", "-m", "wanbench.measure.kafka.programs.readiness"]
            _run(folder, [*readiness, f"{folder}/client.json", "1"], node)
            node.send_signal(signal.SIGTERM)
            node.wait(_PATIENCE_S)
        finally:
            node.kill()
            node.wait()
        if not made.is_file():
            raise ClusterError(f"Java wrote no archive: {_last_message(folder)}")
        replace_file(archive, made.read_bytes())
    return archive


def _certificates(folder):
    tls = Tls(mutual=True)
    files = {"keystore": tls.identity_pem(_ADDRESS, "broker"), "truststore": tls.authority_pem}
    settings = {"ssl.client.auth": "required"}
    for name, content in files.items():
        path = folder / f"{name}.pem"
        path.write_bytes(content)  # in a folder that only its owner can open
        settings |= {f"ssl.{name}.type": "PEM", f"ssl.{name}.location": str(path)}
    return settings


def _java(jars, folder, main_class, arguments, flags):
    logging = [f"-Dlog4j2.configurationFile={package_file('log4j2.properties')}", f"-Dwanbench.log={folder}/log"]
    flags = [*PROFILES["functional"], *flags, *logging]
    return java_command(str(jars), main_class, arguments, heap_mb=256, flags=flags, temporary=str(folder))


def _start(folder, command):
    with (folder / "printed").open("ab") as printed:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed)


def _run(folder, command, broker=None):
    process, end = _start(folder, command), time.monotonic() + _PATIENCE_S
    try:
        while process.poll() is None:
            if time.monotonic() > end or (broker is not None and broker.poll() is not None):
                raise ClusterError(f"the broker does not serve: {_last_message(folder)}")
            time.sleep(0.05)
        if process.returncode:
            raise ClusterError(f"{command[0]} ended with status {process.returncode}: {_last_message(folder)}")
    finally:
        process.kill()
        process.wait()


def _last_message(folder):
    log = folder / "log"
    return last_message(log.read_bytes() if log.exists() else b"", (folder / "printed").read_bytes())


def _free_ports(count):
    sockets = [socket.create_server((_ADDRESS, 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def set_version(version: str, folder: Path, fetch: Callable[[Path, Path], None] | None = None) -> int:
    """
    Pin another version of Kafka in the pom.xml and jars.sha256 of a folder; return the number of jars.

    `fetch` takes a pom.xml and an empty folder, and downloads the jars into it; by default it runs Maven. Raise
    ClusterError if there is no such version; both files then stay unchanged.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+([-.][A-Za-z0-9]+)*", version):
        raise ClusterError(f"{version!r} is not a version of Kafka; write it like 4.3.1.")
    old = (folder / "pom.xml").read_text()
    new = re.sub(r"(<kafka\.version>).*?(</)", rf"\g<1>{version}\g<2>", old)
    with tempfile.TemporaryDirectory(prefix="wanbench-") as name:
        pom, fetched = Path(name, "pom.xml"), Path(name, "jars")
        pom.write_text(new)
        fetched.mkdir()
        (fetch or _fetch)(pom, fetched)
        jars = sorted(fetched.glob("*.jar"))
        if fetched / f"kafka_2.13-{version}.jar" not in jars:
            raise ClusterError(f"Maven did not fetch Kafka {version}; nothing was changed.")
        sums = "".join(f"{sha256(jar)}  {jar.name}\n" for jar in jars)
    replace_file(folder / "pom.xml", new.encode())
    replace_file(folder / "jars.sha256", sums.encode())
    return len(jars)


def _fetch(pom, folder):
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"Maven could not fetch Kafka: {' '.join(done.stdout.split()[-60:])}")


def main(argument: str = "archive") -> int:
    """Pin a version of Kafka, or make the class archive; return 1, with the reason on stderr, on failure."""
    failed = "" if argument != "archive" else "The class archive could not be made, so Kafka will start more slowly: "
    try:
        if argument != "archive":
            n = set_version(argument, package_file("pom.xml").parent)
            print(f"Kafka {argument} is pinned, with {n} jars; `make setup` installs them.")
        elif reason := unavailable():
            raise ClusterError(reason)
        else:
            make_archive(kafka_jars())
    except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
        print(f"{failed}{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
