"""A guard against server-side request forgery: no connection to a private address.

`networks.py` is the list of private networks, `allowing.py` the allow list, `guard.py` the setting.
`connecting.py` looks names up, checks, and connects to what it checked; `layer.py` sees that all
connections of a session are made that way. What is refused gets its type in `refusing.py`.
"""

from .guard import AddressGuard
from .networks import PRIVATE_NETWORKS

__all__ = ["PRIVATE_NETWORKS", "AddressGuard"]
