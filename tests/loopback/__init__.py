"""A small internet on 127.0.0.1, for tests of HTTP clients: servers and proxies that do what they are told.

    with Server() as server:
        url = server.route("/page", sequence(503, 503, answer(body="here it is")))
        ...
        assert [one.method for one in server.requests] == ["GET", "GET", "GET"]

Every request is logged, with the moment it came and the connection it came on. An answer is
bytes under full control: cut, delayed, dripping, compressed, no HTTP at all. Servers run on
threads of this process, and leave no thread and no socket behind when they are closed.
"""

from .answers import (
    Answer,
    Ending,
    Handler,
    Raw,
    answer,
    chunked,
    cut,
    cut_chunked,
    deflated,
    drip,
    echo,
    garbage,
    gzipped,
    hang_up,
    json_answer,
    redirect,
    reset,
    sequence,
    set_cookies,
    silent,
)
from .auth import BasicAuth, DigestAuth
from .certificates import Authority
from .listener import Listener
from .proxy import ForwardProxy
from .received import Fields, Received
from .server import Server

__all__ = [
    "Answer",
    "Authority",
    "BasicAuth",
    "DigestAuth",
    "Ending",
    "Fields",
    "ForwardProxy",
    "Handler",
    "Listener",
    "Raw",
    "Received",
    "Server",
    "answer",
    "chunked",
    "cut",
    "cut_chunked",
    "deflated",
    "drip",
    "echo",
    "garbage",
    "gzipped",
    "hang_up",
    "json_answer",
    "redirect",
    "reset",
    "sequence",
    "set_cookies",
    "silent",
]
