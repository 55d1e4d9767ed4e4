"""
From notebooks to pages: parameters checked, notebooks run, HTML with offline figures written.

The command line calls it. A notebook uses only `colophon`, which says what its page rests on.
"""
