"""
Real sshd's in the namespaces of a local lab, one for each region, and an inventory that reaches them.

One more region, `OPERATOR`, stands for where the driver is: its links are those of the control connections, so a host
can be cut off from the driver and not from the others. Each login's proxy command enters its namespace and connects
from there. A control device of the machine's own would need rights outside the lab's namespaces, and would be
left behind.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import yaml
from patience import comes_about

from wanbench.measure.labs.local import LocalLab
from wanbench.measure.labs.ssh.programs.supervisor import PREFIX
from wanbench.measure.links import LinkSettings
from wanbench.measure.links.launch import is_rootless, search_path

OPERATOR = "lab:operator"
PORT = 2222
PATIENCE_S = 4
SECRET = "planted-in-the-key-files"
BOOT_ID = "/proc/sys/kernel/random/boot_id"

FORWARD = """
import os, selectors, socket, sys
there = socket.create_connection((sys.argv[1], int(sys.argv[2])))
there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
ways = {0: there.fileno(), there.fileno(): 1}
with selectors.DefaultSelector() as ready:
    for end in ways:
        ready.register(end, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            data = os.read(key.fd, 65536)
            if not data:
                sys.exit()
            while data:
                data = data[os.write(ways[key.fd], data):]
"""

CONFIG = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile {folder}/{number}.pid
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PrintMotd no
"""


def unavailable():
    """Why there can be no sshd in a namespace here; None if there can."""
    if shutil.which("sshd", path=search_path()) is None:
        return "there is no sshd: apt-get install openssh-server"
    if is_rootless():
        return "sshd needs root's rights to become the user who logs in"
    return None


class SshdLab:
    """
    An open local lab with an sshd in each region.

    Parameters
    ----------
    folder : Path
        For keys, settings and the inventory.
    links : mapping
        Those of the regions; the operator's are added, and their delay is `control_delay_ms`.
    environment : mapping
        Variables that every login has.
    hosts_per_region : int
        How many hosts of each region the inventory lists. All hosts of a region share its sshd.
    """

    def __init__(self, folder, links, control_delay_ms=1.0, environment=MappingProxyType({}), hosts_per_region=1):
        self.folder = folder
        variables = " ".join(f"{name}={value}" for name, value in environment.items())
        self.config = CONFIG + (f"SetEnv {variables}\n" if variables else "")
        self.regions = list(dict.fromkeys(region for pair in links for region in pair))
        control = {
            pair: LinkSettings(control_delay_ms) for region in self.regions for pair in permutations((OPERATOR, region))
        }
        given = {"hosts_per_region": hosts_per_region, "seed": 1}
        self.lab = LocalLab([*self.regions, OPERATOR], {**links, **control}, **given)
        self._daemons = {}

    def __enter__(self):
        self.lab.__enter__()
        try:
            for name in ("host_key", "user_key"):
                make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", SECRET, "-f", str(self.folder / name)]
                subprocess.run(make_key, check=True)
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where sshd gives up its rights
            for region in self.regions:
                self.start_sshd(region)
            self.inventory = self._write_inventory()
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        self.lab.__exit__()

    def address(self, region):
        return self.lab.host(region).address

    def start_sshd(self, region, boot_id=None):
        """Start the region's sshd; with a boot id of its own, as if the host had been rebooted."""
        number = self.regions.index(region)
        config = self.folder / f"{number}.conf"
        config.write_text(
            self.config.format(port=PORT, address=self.address(region), folder=self.folder, number=number)
        )
        words = [shutil.which("sshd", path=search_path()), "-D", "-e", "-f", str(config)]
        if boot_id is not None:
            (self.folder / f"{number}.boot_id").write_text(f"{boot_id}\n")
            mount = f'mount --bind "$0" {BOOT_ID} && exec "$@"'
            words = ["unshare", "--mount", "sh", "-c", mount, str(self.folder / f"{number}.boot_id"), *words]
        self._daemons[region] = self.lab.host(region).start(words)
        listening = ["ss", "-Hltn", f"sport = :{PORT}"]
        assert comes_about(lambda: self.lab.host(region).run(listening, timeout_s=30).stdout)

    def stop_sshd(self, region):
        """Kill a region's sshd and those that serve its logins."""
        listener = (self.folder / f"{self.regions.index(region)}.pid").read_text().strip()
        everything = [listener, *self._children(listener)]
        self.lab.host(region).run(["kill", "-9", *everything], timeout_s=30, ok=None)
        self._daemons[region].stop()

    def sessions(self, region):
        """The process ids, inside the lab, of the sshd's that serve logins of a region."""
        return self._children((self.folder / f"{self.regions.index(region)}.pid").read_text().strip())

    def reboot(self, region):
        """Kill all that serves a region's logins, and start its sshd with a new boot id."""
        self.stop_sshd(region)
        self.start_sshd(region, boot_id=str(uuid4()))

    def left(self):
        """What supervisors have left: themselves, commands that tests run, and folders."""
        words = ["pgrep", "-fa", "wanbench-supervisor|^iperf3|^ping|^sleep 600"]
        found = self.lab.host(self.regions[0]).run(words, timeout_s=30, ok=None).stdout.decode()
        folders = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
        return [*found.splitlines(), *map(str, folders)]

    def _children(self, pid):
        done = self.lab.host(self.regions[0]).run(["pgrep", "-P", pid], timeout_s=30, ok=None)
        return done.stdout.decode().split()

    def _write_inventory(self):
        key = (self.folder / "host_key.pub").read_text().split()[:2]
        known = self.folder / "known_hosts"
        known.write_text("".join(f"[{self.address(region)}]:{PORT} {' '.join(key)}\n" for region in self.regions))
        forward = self.folder / "forward.py"
        forward.write_text(FORWARD)
        proxy = [*self.lab.entering(OPERATOR), sys.executable, str(forward), "%h", "%p"]
        hosts = [
            {
                "name": f"host-{number}" + f"-{place}" * (self.lab.hosts_per_region > 1),
                "region": region,
                "control_address": self.address(region),
                "address": host.address,
            }
            for number, region in enumerate(self.regions)
            for place, host in enumerate(self.lab.hosts[region])
        ]
        path = self.folder / "inventory.yml"
        shared = {
            "user": "root",
            "port": PORT,
            "key_file": "user_key",
            "known_hosts_file": "known_hosts",
            "python": sys.executable,
            "patience_s": PATIENCE_S,
            "proxy_command": proxy,
        }
        path.write_text(yaml.safe_dump({"defaults": shared, "hosts": hosts}))
        return path
