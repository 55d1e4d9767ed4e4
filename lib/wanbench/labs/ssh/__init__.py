"""
Hosts that are reached by SSH: an inventory of them, the one kept connection to each, and the lab that they make.

On each host a small program of ours (`programs/supervisor.py`) starts the commands, and ends them all as soon as the
connection ends, for whatever reason. So one session of the system's `ssh` carries everything.
"""

from .host import SshHost
from .login import Login

__all__ = ["Login", "SshHost"]
