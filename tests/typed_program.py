"""A program as a user writes it: it is never run, and mypy --strict has nothing to say about it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import requests

import kreuz_sync
from kreuz_sync import (
    Bearer,
    Breaker,
    Budget,
    BudgetExceeded,
    CircuitOpen,
    HostBudget,
    RateLimited,
    Response,
    Retry,
    Session,
    Throttle,
    Tracing,
    WafBlocked,
)
from kreuz_sync.fetch_all import Item


def pages(session: requests.Session, urls: list[str]) -> list[str]:
    """Old code, which knows only requests."""
    return [session.get(url, timeout=10).text for url in urls]


def tell(response: Response) -> str:
    vendor = response.waf.vendor if response.waf is not None else "nobody"
    return f"{response.attempts} {response.waited:.1f} {response.tag} {vendor} {response.retry_after}"


def main() -> None:
    throttle = Throttle(0.5, hosts={"*.example.org": 2.0}, max_wait=30)
    session = Session(
        throttle=throttle,
        retry=Retry(5, jitter="full", statuses={429, 503}),
        headers={"Accept-Language": "en"},
        auth={"https://api.example.com": Bearer("s3cret")},
        timeout=(5, None),
        breaker=Breaker(3, statuses={503}),
        budget=Budget(1000, seconds=60, per_host={"*.example.org": HostBudget(bytes=10**6), "*": 10}),
        tracing=Tracing(redacted=["ticket"], template=lambda url: "/" if url.endswith("/") else None),
    )
    with session:
        pages(session, ["https://example.com/"])
        for response in (session.get("https://example.com/"), session.post("https://example.com/", json={"a": 1})):
            print(tell(response))
        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(session.get, ["https://example.com/a", "https://example.com/b"]))
            with session.fetch_all(["https://example.com/", Item("https://example.com/c")], executor=pool) as results:
                tags = [result.tag or "ok" for result in results if result.error is None]
                print(tags, sum(result.response.attempts for result in results if result.response is not None))
        if session.budget is not None and session.breaker is not None:
            print(session.budget.left().requests, [one.state for one in session.breaker.snapshot().values()])
        print([answer.attempts for answer in answers], throttle.delay_for("example.com"))
        try:
            session.get("https://example.com/").raise_for_status()
        except WafBlocked as error:
            print(error.vendor, error.status)
        except RateLimited as error:
            print(error.retry_after)
        except CircuitOpen as error:
            print(error.host, error.last, error.ready_at)
        except BudgetExceeded as error:
            print(error.what, error.limit - error.used, error.host or "all")
        except requests.RequestException as error:
            print(kreuz_sync.classify(error))
    print(kreuz_sync.get("https://example.com/", timeout=None).attempts)
