"""
Security of a cluster: listeners and certificates (`kinds`), client access (`access`), and secrets.

It imports nothing: programs on hosts must start quickly.
"""
