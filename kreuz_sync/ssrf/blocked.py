"""What ends a connection that must not be made, on its way up through urllib3."""

from __future__ import annotations


class Blocked(Exception):
    """Not a `KreuzError` yet: those are OSErrors, and urllib3 repeats and rewraps an OSError.

    host: as it was looked up. address, network, kind: as in `AddressBlocked`, "" where there is none.
    why: a clause about the host.
    """

    def __init__(self, host: str, why: str, *, address: str = "", network: str = "", kind: str = "") -> None:
        super().__init__(host)
        self.host = host
        self.why = why
        self.address = address
        self.network = network
        self.kind = kind
