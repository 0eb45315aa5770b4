"""The scripted server: paths, and what each of them answers."""

from __future__ import annotations

import ssl

from .answers import Answer, Handler, Raw, echo
from .listener import Connection, Listener
from .received import Received


class Server(Listener):
    """An HTTP/1.1 server on loopback.

    `/` answers 200 and `ok`, `/echo` the request as JSON, other paths 404, until `route` says
    otherwise.
    """

    def __init__(self, *addresses: str, tls: ssl.SSLContext | None = None) -> None:
        self._routes: dict[str, Answer | Raw | int | Handler] = {
            "/": Answer(body="ok", content_type="text/plain"),
            "/echo": echo,
        }
        super().__init__(*addresses, tls=tls)

    def route(self, path: str, what: Answer | Raw | int | Handler, *, host: str | None = None) -> str:
        """Answer `path` with `what`: an answer, a status, or a function of the request. Gives the URL.

        A path that ends in `*` stands for all that begin so; of several the longest counts.
        `host` only chooses the host in the URL.
        """
        self._routes[path] = what
        return self.url(path, host=host)

    def answer(self, connection: Connection, request: Received) -> bool:
        what = self._find(request.path)
        if callable(what):
            what = what(request)
        if isinstance(what, int):
            what = Answer(what)
        return self.perform(connection, what.steps(request))

    def _find(self, path: str) -> Answer | Raw | int | Handler:
        if path in self._routes:
            return self._routes[path]
        prefixes = [one for one in list(self._routes) if one.endswith("*") and path.startswith(one[:-1])]
        return self._routes[max(prefixes, key=len)] if prefixes else 404
