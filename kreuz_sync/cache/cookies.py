"""Cookies of answers: those that were stored, and those that came with an answer which the caller does not get.

requests takes what it puts into the session's jar from `raw._original_response` of an answer, once. An answer out of
the store has none, so that it sets nothing. Where the origin was asked, and confirmed or completed what is stored
(or failed, and what is stored stands in), the cookies that came with its word are put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from http.client import HTTPMessage
from typing import Any

import requests
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar

from kreuz_sync.response import Response

from .raw import StoredRaw
from .stored import FieldLines

_NAME = "Set-Cookie"


class CookieLines:
    """What requests and urllib3 want to see of the standard library's response, where there are only cookies."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.msg = HTTPMessage()
        for line in lines:
            self.msg[_NAME] = line  # which adds one
        self._original_response = self

    def isclosed(self) -> bool:
        """There is no connection that could be given back."""
        return False

    def close(self) -> None:
        """There is nothing to close."""


def jar_of(fields: FieldLines, request: requests.PreparedRequest) -> RequestsCookieJar:
    """The cookies of an answer with `fields`, as the standard library reads them."""
    jar = RequestsCookieJar()
    lines = [value for name, value in fields if name.lower() == "set-cookie"]
    if lines:
        extract_cookies_to_jar(jar, request, CookieLines(lines))
    return jar


def set_by(response: Response) -> list[str]:
    """The Set-Cookie lines of an answer that came over the wire."""
    message = getattr(getattr(response.raw, "_original_response", None), "msg", None)
    return list(message.get_all(_NAME) or ()) if isinstance(message, HTTPMessage) else []


def hand_over(lines: Sequence[str], answer: Response) -> None:
    """Have requests put the cookies of `lines` into the session that gets `answer`, before those of its own."""
    raw: Any = answer.raw
    own: Any = getattr(raw, "_original_response", None)
    if isinstance(raw, StoredRaw):
        raw._original_response = CookieLines(lines)
    elif isinstance(getattr(own, "msg", None), HTTPMessage):
        message = CookieLines(lines).msg
        for name, value in own.msg.items():
            message[name] = value
        own.msg = message


def remember(session: requests.Session | None, request: requests.PreparedRequest, response: Response) -> None:
    """Put the cookies of an answer that came in the background, and that nobody gets, into `session`."""
    if session is not None:
        extract_cookies_to_jar(session.cookies, request, response.raw)
