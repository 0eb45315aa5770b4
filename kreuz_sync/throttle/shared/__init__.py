"""A pace that several machines keep together: what they know of a host is in one place, and this process has a copy.

`scripts.py` are the steps there, `steps.py` brings them on their way; `line.py` is the host as this process knows it,
and `turns.py` asks for leave before each request, on behalf of the first in line.
"""
