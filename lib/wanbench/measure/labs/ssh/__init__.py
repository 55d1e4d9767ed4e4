"""
Hosts reached by SSH: their inventory, one permanent connection to each, and the lab that they form.

On each host a small program of wanbench (`programs/supervisor.py`) starts the commands, and ends them all when the
connection ends, for whatever reason. So one session of the system's `ssh` is enough for everything. OpenSSH's
ControlMaster and asyncssh start a session for each command (which takes 0.3 to 0.5 s on a busy host, compared with 0.01
s) and leave commands running when the connection breaks. With asyncssh, the supervisor would still be needed, and an
event loop besides the threads.
"""

from .connection import Login
from .host import SshHost
from .inventory import Inventory, read_inventory
from .lab import SshLab

__all__ = ["Inventory", "Login", "SshHost", "SshLab", "read_inventory"]
