"""Reading the arguments of `fetch_all`, and putting a run together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableSet
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kreuz_sync import checks
from kreuz_sync.clock import SYSTEM_CLOCK
from kreuz_sync.throttle import Throttle

from .crew import Crew
from .making import Maker
from .pacing import Asked, names_of
from .progress import Silent, progress_for
from .run import FetchAll
from .schedule import Paces, Schedule
from .source import Reader, Source, inputs
from .threads import Threads

if TYPE_CHECKING:
    from kreuz_sync.sessions import Session

WAITING = 4  # so many times as many threads as workers there may be, if the others wait
UNREAD = 8  # results a worker may be ahead of whoever takes them
_TAKES_MORE = 0x08  # of a code object's flags: `**options` takes arguments of any name


def fetch_all(
    session: Session,
    urls: Iterable[Any],
    *,
    workers: int,
    executor: Executor | None,
    progress: bool,
    on_error: str,
    ordered: bool,
    ahead: int,
    live: bool,
    arguments: Mapping[str, Any],
    runs: MutableSet[Crew],
) -> FetchAll:
    """The run that `Session.fetch_all` is asked for. runs: those of the session. Raises TypeError or ValueError."""
    checks.count("workers", workers, least=1)
    checks.count("ahead", ahead, least=1)
    checks.flag("ordered", ordered)
    checks.flag("live", live)
    checks.flag("progress", progress)
    raises = checks.one_of("on_error", on_error, ("return", "raise")) == "raise"
    names = argument_names(session)
    unknown = set() if names is None else arguments.keys() - set(names)
    if unknown:
        raise TypeError(f"neither fetch_all nor Session.request has an argument {', '.join(sorted(unknown))}")
    urls = inputs(urls)
    maker = Maker(session, arguments, names)
    hands: Any
    paces: Paces | None
    if executor is None:
        hands, paces = Threads(maker), paces_of(session)
    else:
        hands, paces, workers = _spread(session, executor, maker, workers)
    crew = Crew(
        Schedule(paces),
        clock=session.throttle.clock if isinstance(session.throttle, Throttle) else SYSTEM_CLOCK,
        workers=workers,
        most=WAITING * workers,
        unread=UNREAD * workers,
        ordered=ordered,
        hire=hands.hire,
    )
    hands.crew = crew
    source = Source(urls, crew, maker, names_of(session.throttle), ahead=ahead, workers=workers)
    reader = Reader(source, crew) if live else None
    bar = progress_for(urls) if progress else Silent()
    return FetchAll(crew, source, reader, hands, runs, bar, ordered=ordered, raises=raises)


def paces_of(session: Session) -> Paces | None:
    """How a schedule asks the session's throttle; None where there is none."""
    return None if session.throttle is None else Asked(session.throttle)


def argument_names(session: Session) -> Collection[str] | None:
    """The names of the arguments that `session.request` has; None if it may have others."""
    code = getattr(type(session).request, "__code__", None)
    if code is None or code.co_flags & _TAKES_MORE:
        return None
    count = code.co_argcount + code.co_kwonlyargcount
    return [name for name in code.co_varnames[:count] if name not in ("self", "url")]


def _spread(session: Session, executor: Any, maker: Maker, workers: int) -> tuple[Any, Paces | None, int]:
    """Who works, the pace and the number of requests under way, with an executor."""
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor={executor!r}: an executor is wanted, such as a ThreadPoolExecutor, or None")
    from .pacing import Estimated
    from .spread import Spread, settings_of, size_of

    workers = size_of(executor, workers)
    if isinstance(executor, ThreadPoolExecutor):
        return Spread(executor, maker), paces_of(session), workers
    estimated = None if session.throttle is None else Estimated(session.throttle)
    return Spread(executor, maker, settings_of(session, executor), estimated), estimated, workers
