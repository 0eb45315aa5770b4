"""Certificates for loopback, made when a test asks for them. Needs `trustme`."""

from __future__ import annotations

import ssl
from pathlib import Path

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "127.0.0.2", "example.test", "*.example.test")


class Authority:
    """A certificate authority that nobody trusts, unless told to by `bundle`.

    folder: where its files are written. bundle: the path of its own certificate (PEM), for
    `verify=`.
    """

    def __init__(self, folder: Path) -> None:
        import trustme

        self.folder = folder
        self._authority = trustme.CA()
        self.bundle = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.bundle)

    def server_context(self, *names: str, wants_client: bool = False) -> ssl.SSLContext:
        """For `Server(tls=...)`: a certificate for `names`. wants_client: refuse clients that show none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # With TLS 1.3 a client learns only after its request that its certificate was refused.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        self._authority.issue_cert(*(names or LOOPBACK_NAMES)).configure_cert(context)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.bundle)
        return context

    def client_files(self, name: str = "client@example.test") -> tuple[str, str]:
        """A client's certificate and key, as paths: what requests' `cert=` takes."""
        issued = self._authority.issue_cert(name)
        paths = str(self.folder / "client.pem"), str(self.folder / "client.key")
        issued.cert_chain_pems[0].write_to_path(paths[0])
        issued.private_key_pem.write_to_path(paths[1])
        return paths
