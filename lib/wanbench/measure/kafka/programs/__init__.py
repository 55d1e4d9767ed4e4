"""
Programs that run on the lab's hosts, by `python -m` or, where the standard library is enough, as copied files; besides
them only Java runs there.

It imports nothing: programs must start quickly.
"""
