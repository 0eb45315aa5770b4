"""From what a caller asks for to the request that is sent: merged with the session, the environment, credentials.

`RememberingSession` does what requests.Session does here, quicker, and puts explicit
credentials before those that lie about.
"""

from __future__ import annotations

from http.cookiejar import CookieJar
from typing import Any, cast

import requests
from requests.cookies import RequestsCookieJar, cookiejar_from_dict, merge_cookies
from requests.sessions import merge_hooks, merge_setting
from requests.structures import CaseInsensitiveDict

from .auth import OriginAuth, credential_fields
from .environment import Environment


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
        prepared = requests.PreparedRequest()
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
        fields = credential_fields(auth)
        if fields:
            prepared.credential_fields = fields  # type: ignore[attr-defined]
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
        fields = getattr(response.request, "credential_fields", ())
        if self.should_strip_auth(response.request.url, prepared_request.url):
            for name in ("Authorization", *fields):
                prepared_request.headers.pop(name, None)
        elif fields:
            prepared_request.credential_fields = fields
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
            return _as_given
        if self.auth:
            return self.auth
        url = _text(request.url)
        if self._origin_auth is not None and self._origin_auth.covers(url):
            return _as_given  # the layer adds them
        if "@" in url and any(requests.utils.get_auth_from_url(url)):
            return None  # requests takes them from the URL
        return None if "Authorization" in self.headers else self._netrc_auth(url)

    def _netrc_auth(self, url: str) -> tuple[str, str] | None:
        if not self.trust_env or (self._origin_auth is not None and self._origin_auth.covers(url)):
            return None
        return self._environment.netrc_auth(url)

    def _params_for(self, request: requests.Request) -> Any:
        # An empty string says "no parameters" to requests at once; an empty dict takes it a while.
        return merge_setting(request.params, self.params) if self.params else request.params or ""

    def _headers_for(self, request: requests.Request) -> Any:
        if not request.headers and None not in self.headers.values():
            return self.headers  # preparing copies it
        return merge_setting(request.headers, self.headers, dict_class=CaseInsensitiveDict)

    def _cookies_for(self, request: requests.Request) -> RequestsCookieJar:
        own: Any = request.cookies or {}
        if not isinstance(own, CookieJar):
            own = cookiejar_from_dict(own)
        return cast(RequestsCookieJar, merge_cookies(merge_cookies(RequestsCookieJar(), self.cookies), own))


def _as_given(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An auth that leaves the request's Authorization field as the caller wrote it."""
    return request


def _text(url: Any) -> str:
    return url.decode("utf-8", "replace") if isinstance(url, bytes) else str(url or "")


def _lower(name: str | bytes) -> str:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower()
