"""One run of the command, apart from reading its arguments: the session, the summary, the exit code."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import IO, NamedTuple

from kreuz_sync.retry import Retry
from kreuz_sync.sessions import POOL_MAXSIZE, Session
from kreuz_sync.ssrf import AddressGuard
from kreuz_sync.throttle import RateLimiter, Throttle

from .fetching import Results, run
from .summary import summary

OK = 0
SOME_FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Options(NamedTuple):
    """What `fetch` and `demo` take.

    delay, timeout: seconds. retries: after the first try. max_body: bytes, None for no limit.
    guard: which addresses redirects may lead to, None for all.
    """

    delay: float
    workers: int
    retries: int
    timeout: float
    max_body: int | None
    headers: Mapping[str, str]
    user_agents: tuple[str, ...]
    guard: AddressGuard | None = None


def open_session(options: Options, throttle: RateLimiter | None = None) -> Session:
    """The session that `options` describe. Raises ValueError."""
    return Session(
        throttle=Throttle(options.delay) if throttle is None else throttle,
        retry=Retry(options.retries),  # also for 0: it counts the attempts of what fails
        timeout=options.timeout,
        max_body=options.max_body,
        headers=options.headers,
        user_agents=options.user_agents or None,
        deny_private=options.guard or False,
        pool_maxsize=max(POOL_MAXSIZE, options.workers),
    )


def carry_out(session: Session, urls: Iterable[str], results: Results, *, workers: int, stream: IO[str]) -> int:
    """Fetch `urls`, say on `stream` what it came to, and give the exit code."""
    stopped = None
    try:
        run(session, urls, results, workers=workers)
        code = SOME_FAILED if results.tally.failed else OK
    except KeyboardInterrupt:
        code, stopped = INTERRUPTED, "interrupted"
    except BrokenPipeError:  # `| head` has seen enough
        code, stopped = SOME_FAILED, "stopped: nobody reads the results any more"
    except OSError as error:
        code, stopped = SOME_FAILED, f"stopped: {error}"
    if results.tally.done:
        say(stream, summary(results.tally, backoffs(session)))
    if stopped is not None:
        say(stream, f"kreuz-sync: {stopped}; what was done until then is whole")
    return code


def backoffs(session: Session) -> dict[str, int]:
    """How often each host's delay was raised; empty where another limiter is in the throttle's place."""
    if not isinstance(session.throttle, Throttle):
        return {}
    return {name: host.backoffs for name, host in session.throttle.snapshot().items()}


def say(stream: IO[str], text: str) -> None:
    """Print a line, if somebody is left to read it."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
        stream.write(text + "\n")
        stream.flush()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGINT and SIGTERM raise KeyboardInterrupt, once: a second one ends the process on the spot."""
    caught = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        caught = []  # only the main thread may set handlers

    def interrupt(number: int, frame: FrameType | None) -> None:
        for one in caught:
            signal.signal(one, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, interrupt) for one in caught}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
