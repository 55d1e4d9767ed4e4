"""
Hosts that are reached by SSH: an inventory of them, the one kept connection to each, and the lab that they make.

On each host a small program of ours (`programs/supervisor.py`) starts the commands, and ends them all as soon as the
connection ends, for whatever reason. So one session of the system's `ssh` carries everything. OpenSSH's ControlMaster
and asyncssh start a session for each command (0.3 to 0.5 s on a busy host, against 0.01 s) and leave commands running
when the connection dies; asyncssh in place of `ssh` alone would need the same supervisor, and an event loop beside our
threads.
"""

from .connection import Login
from .host import SshHost
from .inventory import Inventory, read_inventory
from .lab import SshLab

__all__ = ["Inventory", "Login", "SshHost", "SshLab", "read_inventory"]
