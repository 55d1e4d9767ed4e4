"""
Programs that run on the hosts of a lab, as copied files or by `python -m`. Nothing else runs there but Java.

It imports nothing: programs must start quickly.
"""
