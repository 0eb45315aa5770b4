"""From what a caller asks for to the request that is sent: merged with the session, the environment, credentials.

`RememberingSession` does what requests.Session does here, quicker, and puts explicit
credentials before those that lie about.
"""

from __future__ import annotations

from collections.abc import Callable
from http.cookiejar import CookieJar
from typing import Any, cast

import requests
from requests.cookies import RequestsCookieJar, cookiejar_from_dict, merge_cookies
from requests.sessions import merge_hooks, merge_setting
from requests.structures import CaseInsensitiveDict

from .auth import OriginAuth
from .calls import current
from .credentials import credential_fields, noting
from .environment import Environment


class Prepared(requests.PreparedRequest):
    """A request that knows which of its fields are credentials, and whose copies know it too.

    credential_fields: names besides Authorization. credential_hooks: response hooks that answer
    challenges. led_by_private: of a redirect's request, whether the redirect came from a private address, as far
    as that is known; None for what no redirect led to.
    """

    credential_fields: tuple[str, ...] = ()
    credential_hooks: tuple[Any, ...] = ()
    led_by_private: bool | None = None

    def copy(self) -> Prepared:
        """As requests' own."""
        copy: Any = super().copy()
        copy.__class__ = Prepared
        copy.credential_fields, copy.credential_hooks = self.credential_fields, self.credential_hooks
        copy.led_by_private = self.led_by_private
        return cast(Prepared, copy)


class RememberingSession(requests.Session):
    """A `requests.Session` that remembers the environment, and whose credentials have an order.

    Credentials are those of the first that has any: the call's `auth`, the call's
    Authorization field, the session's `auth`, the credentials of the origin, the URL's user
    information, the session's Authorization field, the netrc file.
    """

    _origin_auth: OriginAuth | None = None

    def __init__(self) -> None:
        self._environment = Environment()
        super().__init__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._environment = Environment()
        super().__setstate__(state)

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """As requests' own."""
        auth = self._auth_for(request)
        if callable(auth):
            auth = noting(auth)
        prepared = Prepared()
        prepared.prepare(
            method=(request.method or "").upper(),
            url=request.url,
            files=request.files,
            data=request.data,
            json=request.json,
            headers=self._headers_for(request),
            params=self._params_for(request),
            auth=auth,
            cookies=self._cookies_for(request),
            hooks=merge_hooks(request.hooks, self.hooks),
        )
        if LINE_ENDS_PASS:
            _refuse_line_ends(prepared.headers)
        return prepared

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """As requests' own, from the remembered environment."""
        if self.trust_env:
            if proxies is not None:
                proxies = {**self._environment.proxies(url, proxies.get("no_proxy")), **proxies}
            if verify is True or verify is None:
                verify = self._environment.ca_bundle() or verify
        if self.proxies or proxies is None or None in proxies.values():  # None stands for one that is not to be used
            proxies = merge_setting(proxies, self.proxies)
        return {
            "proxies": proxies,
            "stream": self.stream if stream is None else stream,
            "verify": merge_setting(verify, self.verify),
            "cert": merge_setting(cert, self.cert),
        }

    def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
        """Leave credentials behind when a redirect leaves their origin; take the netrc file's for the new one."""
        if self.should_strip_auth(response.request.url, prepared_request.url):
            call = current.get()
            # A session's own auth is named for requests that it did not prepare itself.
            fields = {
                *getattr(prepared_request, "credential_fields", ()),
                *getattr(response.request, "credential_fields", ()),
                *(call.credential_fields if call is not None else ()),
                *credential_fields(self.auth),
            }
            for name in ("Authorization", *fields):
                prepared_request.headers.pop(name, None)
            _drop_hooks(prepared_request, getattr(prepared_request, "credential_hooks", ()))
            prepared_request.credential_fields = ()
        if "Authorization" not in prepared_request.headers:
            found = self._netrc_auth(prepared_request.url)
            if found is not None:
                prepared_request.prepare_auth(found)

    def _auth_for(self, request: requests.Request) -> Any:
        if request.auth:
            return request.auth
        if request.headers and any(
            _lower(name) == "authorization" and value is not None for name, value in request.headers.items()
        ):
            return _beside(self.auth) if callable(self.auth) else _as_given
        if self.auth:
            return self.auth
        url = _text(request.url)
        if self._origin_auth is not None and self._origin_auth.covers(url):
            return _as_given  # the layer adds them
        if "@" in url and _has_user_info(url):
            return None  # requests takes them from the URL
        if any(_lower(name) == "authorization" for name in self.headers or ()):
            return None
        return self._netrc_auth(url)

    def _netrc_auth(self, url: str) -> tuple[str, str] | None:
        if not self.trust_env or (self._origin_auth is not None and self._origin_auth.covers(url)):
            return None
        return self._environment.netrc_auth(url)

    def _params_for(self, request: requests.Request) -> Any:
        # An empty string says "no parameters" to requests at once; an empty dict takes it a while.
        return merge_setting(request.params, self.params) if self.params else request.params or ""

    def _headers_for(self, request: requests.Request) -> Any:
        if not request.headers and self.headers and None not in self.headers.values():
            return self.headers  # preparing copies it
        return merge_setting(request.headers, self.headers, dict_class=CaseInsensitiveDict)

    def _cookies_for(self, request: requests.Request) -> RequestsCookieJar:
        own: Any = request.cookies or {}
        if not isinstance(own, CookieJar):
            own = cookiejar_from_dict(own)
        return cast(RequestsCookieJar, merge_cookies(merge_cookies(RequestsCookieJar(), self.cookies), own))


def _has_user_info(url: str) -> bool:
    try:
        return any(requests.utils.get_auth_from_url(url))
    except ValueError:  # requests will say what is wrong with it
        return True


def _line_ends_pass() -> bool:
    """Whether this requests lets a line end at the very end of a field pass, as releases before 2.32 do."""
    try:
        requests.utils.check_header_validity(("a", "b\n"))
    except requests.exceptions.InvalidHeader:
        return False
    return True


LINE_ENDS_PASS = _line_ends_pass()


def _refuse_line_ends(fields: Any) -> None:
    # http.client would refuse it later, and quote the value.
    for name, value in fields.items():
        if value[-1:] in ("\n", "\r", b"\n", b"\r"):
            raise requests.exceptions.InvalidHeader(f"a line end at the end of the field {name!r}")


def _as_given(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An auth that leaves the request's Authorization field as the caller wrote it."""
    return request


def _beside(auth: Callable[[requests.PreparedRequest], requests.PreparedRequest]) -> Any:
    """`auth`, which may also set other fields, without its part in the Authorization field."""

    def apply(request: requests.PreparedRequest) -> requests.PreparedRequest:
        given = request.headers["Authorization"]
        request = auth(request)
        request.headers["Authorization"] = given
        return request

    return apply


def _drop_hooks(request: Any, hooks: tuple[Any, ...]) -> None:
    """Take `hooks` from the request; its dictionary of hooks is shared with the request before it."""
    if hooks:
        request.hooks = {event: [one for one in kept if one not in hooks] for event, kept in request.hooks.items()}


def _text(url: Any) -> str:
    return url.decode("utf-8", "replace") if isinstance(url, bytes) else str(url or "")


def _lower(name: str | bytes) -> str:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower()
