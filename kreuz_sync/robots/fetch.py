"""Asking a server for its robots.txt: the request, its redirects, and what its answer means.

RFC 9309, section 2.3.1. The request goes the way of the call that needs it (its adapter, proxies,
certificates and time-outs, every layer of its stack), and without its credentials, cookies and body.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import BaseAdapter
from requests.utils import default_headers, requote_uri, resolve_proxies

from kreuz_sync import errors
from kreuz_sync.calls import Call, current
from kreuz_sync.clock import Clock
from kreuz_sync.response import Response, adopt
from kreuz_sync.retry.discard import discard
from kreuz_sync.urls import redact, without_user_info
from kreuz_sync.useragent import DEFAULT_USER_AGENT

from .life import LONGEST_S, Answer, age_and_freshness
from .lines import LIMIT
from .refusal import Refusal

REDIRECTS = 5  # in a row that are followed, also to other hosts (section 2.3.1.2)
CHUNK = 16 * 1024
LIMIT_S = 30.0  # on the wire; a server that sends an octet now and then would never end

# What ends an attempt to reach a server. Other errors of ours are policy, and say nothing about it.
_UNREACHABLE = (
    errors.ConnectionFailed,
    errors.ReadTimeout,
    errors.DataLoss,
    errors.BodyTooLarge,
    errors.RetriesExhausted,
)
# Policy about this call: whoever asks has to know. Any other is a way that is closed to a redirect.
_OF_THE_CALL = (
    *(errors.DeadlineExceeded, errors.ThrottleTimeout, errors.SessionClosed),
    *(errors.RateLimitExceeded, errors.RateLimitUnavailable),
)

_log = logging.getLogger("kreuz_sync.robots")


class Errand(NamedTuple):
    """On whose behalf a file is asked for.

    call: that of all its requests, made by `Call.errand`. agent: the caller's User-Agent. options:
    requests' five for the caller's request. request: that, if there is one. inner: the adapter to
    go through if neither session nor stack is known. silence: seconds without an answer by the
    call's deadline that make a server unreachable.
    """

    call: Call
    agent: str
    options: dict[str, Any]
    request: requests.PreparedRequest | None = None
    inner: BaseAdapter | None = None
    silence: float = 5.0


def longest(timeout: Any) -> float:
    """Seconds that a file may take on the wire, redirects included: five time-outs for a read, `LIMIT_S` at most.

    >>> longest(30.0), longest((3.05, 1.0)), longest(None)
    (30.0, 5.0, 30.0)
    """
    seconds = getattr(timeout, "read_timeout", timeout[-1] if isinstance(timeout, tuple) and timeout else timeout)
    return min(LIMIT_S, 5.0 * seconds) if isinstance(seconds, (int, float)) else LIMIT_S


def fetch(url: str, errand: Errand, clock: Clock) -> Answer:
    """The robots.txt at `url`, or what the failure to get it means.

    Raises the errors that are this session's own rules: the call's deadline, `max_wait`, a budget,
    a rate limit, a closed session; Refusal where a rate limit answered itself.
    """
    options = {**errand.options, "stream": True}
    errand.call.wire_left = longest(options.get("timeout"))
    target = url
    for _ in range(REDIRECTS + 1):
        try:
            adapter = _adapter(target, errand)
            request = _request(target, errand.agent, adapter)
            if target is not url:
                options["proxies"] = _proxies(request, errand)
                errand.call.by_caller = False
            _require_guarded(request, errand)
            response = _send(adapter, request, errand.call, options)
        except errors.KreuzError as error:
            if _is_own_limit(error, errand.call):
                return _failure(url, error)
            if _is_policy(error) and (target is url or isinstance(error, _OF_THE_CALL)):
                raise
            return _failure(url, error)
        except (OSError, urllib3.exceptions.HTTPError, ValueError) as error:  # requests' own are among these
            return _failure(url, error)
        if response.from_rate_limit:
            raise Refusal(redact(target), response)
        if not response.is_redirect:
            return _meaning(url, response, errand.call, clock)
        discard(response, clock)
        followed = _target(response, target)
        if followed is None:
            return _unavailable(url, "a redirect to what is no http URL")
        target = followed
    return _unavailable(url, f"more than {REDIRECTS} redirects")


# --- the request ----------------------------------------------------------------------------


def _request(url: str, agent: str, adapter: BaseAdapter) -> requests.PreparedRequest:
    fields = default_headers()
    fields["User-Agent"] = agent
    if any(hasattr(layer, "is_cache") for layer in getattr(adapter, "layers", ())):
        # Also a cache that keeps answers for longer must not pass on an older one.
        fields["Cache-Control"] = f"max-age={int(LONGEST_S)}"
    return requests.Request("GET", url, headers=fields).prepare()


def _send(adapter: BaseAdapter, request: requests.PreparedRequest, call: Call, options: dict[str, Any]) -> Response:
    token = current.set(call)
    try:
        return adopt(adapter.send(request, **options))
    finally:
        current.reset(token)


def _adapter(url: str, errand: Errand) -> BaseAdapter:
    """The one that the session has for `url`; else that of the call's own request."""
    if errand.call.session is not None:
        return errand.call.session.get_adapter(url)
    adapter = errand.call.stack or errand.inner
    assert adapter is not None, "a call has a session or a stack, and a layer has an adapter"
    return adapter


def _require_guarded(request: requests.PreparedRequest, errand: Errand) -> None:
    session: Any = errand.call.session
    if session is not None and session._is_guarded:
        session._require_guarded_way(request)


def _proxies(request: requests.PreparedRequest, errand: Errand) -> dict[str, str]:
    """Those for where a redirect leads, as requests finds them."""
    session = errand.call.session
    return resolve_proxies(request, errand.options.get("proxies"), session is None or session.trust_env)


def _target(response: Response, asked: str) -> str | None:
    """Where the redirect that `asked` was answered with leads; None if that is no http URL."""
    location = response.headers["Location"].encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        target = urljoin(asked, requote_uri(location))
        parts = urlsplit(target)
        possible = parts.port != 0  # raises for what is no port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc or not possible:
        return None
    return without_user_info(target).partition("#")[0]


# --- what comes of it -----------------------------------------------------------------------


def _meaning(url: str, response: Response, call: Call, clock: Clock) -> Answer:
    status = response.status_code
    try:
        content = _read(response)
    except (OSError, urllib3.exceptions.HTTPError, ValueError) as error:
        if _is_policy(error) and not _is_own_limit(error, call):
            raise
        if status < 300:
            return _failure(url, error)
        content = b""
    finally:
        response.close()
    if _is_offline(response):
        return Answer(b"", "nothing is asked offline", lasting=False)  # nor is anything sent that it might refuse
    if response.waf is not None:
        return _unreachable(url, f"a {response.waf.vendor} {response.waf.kind} page in its place", response)
    if status == 429 or not 200 <= status < 500:
        return _unreachable(url, f"it answered {status}", response)
    age, fresh = age_and_freshness(_fields(response), now=clock.wall())
    if status >= 300:
        return Answer(b"", f"it answered {status}", age, fresh)
    return Answer(content, "", age, fresh)


def _read(response: Response) -> bytes:
    """Its body, decoded, and not much more of it than counts."""
    response.limits = response.limits._replace(max_body=None)
    pieces, size = [], 0
    for piece in response.iter_content(CHUNK):
        pieces.append(piece)
        size += len(piece)
        if size > LIMIT:
            break
    return b"".join(pieces)[: LIMIT + 1]  # the one more tells that there is more


def _fields(response: Response) -> Iterable[tuple[str, str]]:
    return [(name, str(value)) for name, value in response.headers.items()]


def _is_policy(error: Exception) -> bool:
    return isinstance(error, errors.KreuzError) and not isinstance(error, _UNREACHABLE)


def _is_own_limit(error: Exception, call: Call) -> bool:
    """Whether it was not the call's deadline that came first, but that of asking for a file."""
    left = call.left()
    return isinstance(error, errors.DeadlineExceeded) and error.retry_after is None and (left is None or left > 0)


def _failure(url: str, error: Exception) -> Answer:
    return _unreachable(url, errors.classify(error) if isinstance(error, OSError) else type(error).__name__)


def _unreachable(url: str, reason: str | None, response: Response | None = None) -> Answer:
    shown = redact(url)
    told = {"event": "robots_unreachable", "url": shown, "reason": reason}
    _log.info("%s is unreachable: %s", shown, reason, extra=told)
    if response is None:
        return Answer(None, reason or "")
    return Answer(None, reason or "", pause=response.retry_after or 0.0)


def _unavailable(url: str, reason: str) -> Answer:
    shown = redact(url)
    told = {"event": "robots_unavailable", "url": shown, "reason": reason}
    _log.info("%s is unavailable, which allows everything: %s", shown, reason, extra=told)
    return Answer(b"", reason)


def _is_offline(response: Response) -> bool:
    """Whether the cache said, in the server's place, that it has no such file."""
    return response.status_code == 504 and not response.attempts and not response.from_cache


def agent_of(fields: Mapping[str, str | bytes | None]) -> str:
    """The User-Agent among `fields`, or else this package's own."""
    agent = fields.get("User-Agent")
    return agent.decode("latin-1") if isinstance(agent, bytes) else agent or DEFAULT_USER_AGENT
