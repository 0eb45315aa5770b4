"""Layer 2: the User-Agent field. Rotation, for those who want it; the caller's own always wins.

The agents rotate per call, or stay the same for each host. Whoever sets a User-Agent, on the
call or on the session, is left alone.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Iterable
from typing import Any

import requests
from requests.adapters import BaseAdapter

from . import checks, fork
from .calls import current_call
from .settings import Setting, Single
from .stack import LayerAdapter, copy_request
from .urls import host_of
from .version import __version__

DEFAULT_USER_AGENT = f"kreuz-sync/{__version__}"

# What a session says of itself when nobody chose: the bare product, without a comment.
_NOBODYS_CHOICE = re.compile(r"(?:kreuz-sync|python-requests)/\S*")


class UserAgents(Single, Setting):
    """Agents to take turns.

    agents: a list of them; or "rotate" for the bundled ones (see `browsers`). An empty list
    changes nothing. per: "call" gives each call the next of the list, one round after another,
    over all threads, mounts and sessions that share this object; "host" gives each host one,
    chosen by its name alone, so that it is the same in every process and every run. A call
    keeps its agent through retries and, with "call", through redirects.

    A copy is the same object, since turns are shared by nature; a pickle starts a round anew.

    Raises TypeError or ValueError for agents that a header field cannot hold.
    """

    fields = ("agents", "per")
    agents: tuple[str, ...]
    per: str
    _turns: _Turns

    def __init__(self, agents: Iterable[str] | str, *, per: str = "call") -> None:
        self._fix(agents=_agents(agents), per=checks.one_of("per", per, ("call", "host")), _turns=_Turns())

    @classmethod
    def browsers(cls, *, per: str = "call") -> UserAgents:
        """The bundled agents of current browsers.

        They are a part of the package, and as old as it is: each release brings them up to
        date, and nothing is ever fetched. A program that needs newer ones gives its own list.
        """
        return cls("rotate", per=per)

    def __call__(self, inner: BaseAdapter) -> UserAgentAdapter:
        return UserAgentAdapter(self, inner)

    def take(self) -> str:
        """The next agent; there must be one."""
        return self.agents[self._turns.take(len(self.agents))]

    def of_host(self, host: str) -> str:
        """The agent that `host` always sees; there must be one."""
        # Nothing to remember: a million hosts take no memory. hash() differs between processes.
        return self.agents[zlib.crc32(host.encode("utf-8", "surrogatepass")) % len(self.agents)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.agents, self.per)


class _Turns:
    """Whose turn it is, for all threads.

    `next(itertools.count())` would do where one thread runs at a time; a Python without that
    rule may give two threads the same number.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0  # guarded by _lock
        fork.renew_in_child(self)

    def take(self, places: int) -> int:
        """This turn, 0 to `places` - 1; the next caller gets the next one."""
        with self._lock:
            turn = self._next
            self._next = (turn + 1) % places
        return turn

    def after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread that is not here may hold the parent's


class UserAgentAdapter(LayerAdapter):
    """Send each request with an agent of `agents`, unless its caller chose another."""

    def __init__(self, agents: UserAgents, inner: BaseAdapter) -> None:
        super().__init__(inner)
        self.agents = agents

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        if not self.agents.agents or _chosen(request.headers.get("User-Agent")):
            return self.inner.send(request, **options)
        copy = copy_request(request)
        copy.headers["User-Agent"] = self._agent_for(request)
        return self.inner.send(copy, **options)

    def _agent_for(self, request: requests.PreparedRequest) -> str:
        if self.agents.per == "host":
            return self.agents.of_host(host_of(request.url or ""))
        call = current_call()
        if call.user_agent is None:
            call.user_agent = self.agents.take()
        return call.user_agent


def _chosen(agent: str | bytes | None) -> bool:
    """Whether a caller wrote this. A request without the field was made by hand, and nobody chose."""
    if agent is None:
        return False
    text = agent.decode("latin-1") if isinstance(agent, bytes) else agent
    return not _NOBODYS_CHOICE.fullmatch(text)


def _agents(value: Any) -> tuple[str, ...]:
    if value == "rotate":
        from .browsers import BROWSERS

        return BROWSERS
    if isinstance(value, str):
        raise TypeError(f'user_agents={value!r}: a list of agents is wanted, or "rotate" for the bundled ones')
    agents = checks.texts("user_agents", value)
    return tuple(checks.field_value(f"user_agents[{index}]", agent) for index, agent in enumerate(agents))


def _rebuild(kind: type[UserAgents], agents: tuple[str, ...], per: str) -> UserAgents:
    return kind(agents, per=per)
