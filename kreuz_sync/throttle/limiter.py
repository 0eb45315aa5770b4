"""The seam: what a session asks of anything that paces its requests."""

from __future__ import annotations

from abc import ABC, abstractmethod

from requests.adapters import BaseAdapter

from .layer import LimiterAdapter


class RateLimiter(ABC):
    """Decides when a host's next request may be sent. Subclass it to pace by your own rule.

    Give an instance to `Session(throttle=...)` in place of a `Throttle`; it may serve many
    sessions and threads at once, so its methods must be thread-safe. Hosts are named in lower
    case, in IDNA form, without port or trailing dot. These three methods are all that is
    ever called, but for `wait_for(host)`: if there is one, `fetch_all` asks it in how many seconds a
    host is due. It must not wait.

        class Nightly(RateLimiter):
            def acquire(self, host):
                time.sleep(60 if is_day() else 1)

            def record_response(self, host, status): ...
            def set_crawl_delay(self, host, seconds): ...
    """

    @abstractmethod
    def acquire(self, host: str) -> None:
        """Wait until a request to `host` may be sent. Called before every attempt, retries included.

        An exception raised here is the caller's: the request is not sent.
        """

    @abstractmethod
    def record_response(self, host: str, status: int) -> None:
        """Learn that `host` answered with `status`.

        A challenge page in place of the answer is told as 429 whatever its own status, so that it
        is never taken for a success. Not called where no answer came.
        """

    @abstractmethod
    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Learn the delay that `host` asks for itself, such as a robots.txt's Crawl-delay."""

    def __call__(self, inner: BaseAdapter) -> BaseAdapter:
        """The layer: an adapter that asks this limiter before every attempt through `inner`."""
        return LimiterAdapter(inner, self)
