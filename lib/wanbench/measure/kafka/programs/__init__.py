"""
Programs that run on the lab's hosts: by `python -m`, or copied as single files where the standard library is enough.
Apart from Java, nothing else runs there. This package imports nothing, because programs must start quickly.
"""
