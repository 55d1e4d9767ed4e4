"""
Programs that run on the lab's hosts, as modules (`python -m`) or, if they need only the standard library, as single
copied files. Nothing else of this library runs there. This package imports nothing, because programs must start
quickly.
"""
