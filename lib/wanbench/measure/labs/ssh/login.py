"""How a host is logged in to by SSH, as the command line of OpenSSH's `ssh`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECT_S = 15
"""Timeout for TCP and the exchange of keys; on the longest path on Earth, three round trips take 1 s."""


@dataclass(frozen=True)
class Login:
    """
    Where and as whom to log in. Host keys are always checked against `known_hosts_file`, and nothing is ever asked.

    Attributes
    ----------
    address : str
        Address for control; it may differ from the one used for measuring.
    user : str
    key_file : path
        The private key. Its path is on command lines of this machine, its content nowhere.
    known_hosts_file : path
        Lines as `ssh-keyscan` prints them; a host that is not in it, or has another key, is refused.
    port : int
    jump : Login, optional
        Log in there first.
    proxy_command : sequence of str
        A command whose stdin and stdout lead to the host, in place of a TCP connection from here: "%h" and "%p" in it
        are address and port.
    """

    address: str
    user: str
    key_file: str | Path
    known_hosts_file: str | Path
    port: int = 22
    jump: Login | None = None
    proxy_command: tuple[str, ...] = ()

    def command(self, remote: Sequence[str], alive_s: float) -> list[str]:
        """
        The command that runs `remote` there; ends by itself when nothing came back for about `alive_s`.

        No file of the user's own configuration takes part, so that the inventory says all there is to say.
        """
        return [*self._ssh(alive_s), *self._to(), "--", shlex.join(remote)]

    def without_secrets(self, text: str, name: str) -> str:
        """What ssh said, fit for a journal: without addresses and users to log in with, and paths of keys."""
        if self.jump is not None:
            text = self.jump.without_secrets(text, f"{name}'s jump")
        for path in (self.key_file, self.known_hosts_file):
            text = text.replace(str(path), "(a file of the inventory)")
        return text.replace(f"{self.user}@{self.address}", name).replace(self.address, name)

    def _ssh(self, alive_s):
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": _quoted(self.known_hosts_file),
            "GlobalKnownHostsFile": "/dev/null",
            "UpdateHostKeys": "no",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "IdentityFile": _quoted(self.key_file),
            "ConnectTimeout": CONNECT_S,
            "ServerAliveInterval": max(1, round(alive_s / 3)),
            "ServerAliveCountMax": 3,
            "LogLevel": "ERROR",
        }
        if proxy := self._proxy(alive_s):
            options["ProxyCommand"] = proxy
        words = [f"-o{name}={value}" for name, value in options.items()]
        return ["ssh", "-F", "none", "-T", "-a", "-x", *words, "-p", str(self.port)]

    def _to(self):
        return ["-l", self.user, self.address]

    def _proxy(self, alive_s):
        if self.jump is not None:
            words = [*self.jump._ssh(alive_s), "-W", f"[{self.address}]:{self.port}", *self.jump._to()]
            return shlex.join(words).replace("%", "%%")
        # A literal "%" is refused by the inventory, so that only %h and %p are replaced.
        return shlex.join(self.proxy_command) if self.proxy_command else None


def _quoted(path):
    """A path as a value of ssh's options: quotes around spaces, and percent signs doubled, as ssh would expand them."""
    text = os.path.abspath(os.path.expanduser(path)).replace("%", "%%")
    return f'"{text}"' if " " in text else text
