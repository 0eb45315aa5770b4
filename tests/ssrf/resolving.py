"""What tests of the guard share: a resolver, and a loopback address that plays a public one.

All servers here are on loopback, which is private. Where a public one is wanted, the guard is
given a list of its own, in which 127.0.0.1 is public and 127.0.0.2 private, and a resolver that
leads names there.
"""

import socket

from kreuz_sync import AddressBlocked

PUBLIC, PRIVATE = "127.0.0.1", "127.0.0.2"


def row(address, port=0):
    """As `socket.getaddrinfo` has it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, 6, "", (address, port, 0, 0) if ":" in address else (address, port)


class Resolver:
    """Leads each name to the next of its answers, and to the last one from then on; a literal to itself.

    An answer is an address, a list of them, or an exception. asked: the names that were looked up.
    """

    def __init__(self, **names):
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked = []

    def __call__(self, host, port, *others, **more):
        self.asked.append(host)
        answers = self.names.get(host.rstrip("."), [host])
        answer = answers[min(self.asked.count(host), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return [row(one, port) for one in ([answer] if isinstance(answer, str) else answer)]


def with_literals(resolver):
    """As the system's own look-up, literals in any form are read."""

    def lookup(host, port, family, kind):
        if host in resolver.names:
            return resolver(host, port)
        return socket.getaddrinfo(host, port, family, kind)

    return lookup


def no_connection(server):
    assert (server.accepted, server.requests) == (0, [])


def outcome_of(session, url):
    """The body, or "blocked"."""
    try:
        return session.get(url).text
    except AddressBlocked:
        return "blocked"
