"""
Programs that run on the lab's hosts, as copied files or by `python -m`; besides them only Java runs there.

It imports nothing: programs must start quickly.
"""
