"""A rate limit of the session that has no room for the request for a robots.txt file.

It was not sent, so the site has said nothing: what was to be fetched meets the limit's own outcome.
"""

from __future__ import annotations

import requests

from kreuz_sync.clock import Clock
from kreuz_sync.errors import KreuzError, RateLimitExceeded, RateLimitUnavailable
from kreuz_sync.response import Response


class Refusal(Exception):
    """response: what the rate limit answered in the site's place. url: of the file that was not asked for."""

    def __init__(self, url: str, response: Response) -> None:
        super().__init__(url)
        self.url = url
        self.response = response

    def answer_to(self, request: requests.PreparedRequest) -> Response:
        """The rate limit's answer, as one to `request`, which was not sent either."""
        self.response.request = request
        self.response.url = request.url or ""
        return self.response

    def error(self, clock: Clock) -> KreuzError:
        """The same for who asked for no page, and so cannot be given an answer."""
        policy = self.response.limited_by
        if policy is None:
            return RateLimitUnavailable(f"GET {self.url}: a rate limit cannot tell whether there is room")
        return RateLimitExceeded(
            f"GET {self.url}: over the rate limit {policy.name!r} of {policy.limit} in {policy.window:g} s; "
            f"its next window is {policy.reset_after:.3g} s away",
            policy=policy.name,
            limit=policy.limit,
            retry_after=policy.reset_after,
            as_of=clock.wall(),
        )
