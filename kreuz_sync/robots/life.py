"""How long what is known of an origin's robots.txt holds. Pure; RFC 9309, sections 2.3.1 and 2.4.

Moments are seconds of one monotonic clock, and come in as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kreuz_sync.cache.directives import directives
from kreuz_sync.cache.freshness import age_value, date_value, explicit_lifetime
from kreuz_sync.cache.lines import grouped

LONGEST_S = 24 * 3600.0  # section 2.4
SHORTEST_S = 300.0  # that a file is believed, whatever its fields say
FAILURE_S = 60.0  # that the first failure in a row is remembered; the next ones twice as long each
LONGEST_FAILURE_S = 300.0
OLD_COPY_S = 30 * 24 * 3600.0  # that a file serves while its server is unreachable (section 2.3.1.4)


class Answer(NamedTuple):
    """What came of asking for a robots.txt file.

    content: the file; b"" for one that is unavailable, which allows everything; None if the server
    is unreachable. reason: why it is not a file, in a few words; "" for a file. age: seconds since
    the server made it. fresh: seconds from then for which it says the answer is fresh, None if it
    says nothing. pause: seconds it asks to be left alone. lasting: False for what is not to be remembered,
    since the server was not asked.
    """

    content: bytes | None
    reason: str = ""
    age: float = 0.0
    fresh: float | None = None
    pause: float = 0.0
    lasting: bool = True


class Known(NamedTuple):
    """What is known of one origin's robots.txt, and until when.

    content: the file, None if there is none to go by: everything is disallowed. reason: why it is
    not as fresh as it might be, or not a file. until: when to ask again. learnt: when the content
    came. failures: how often in a row asking failed since.
    """

    content: bytes | None
    reason: str
    until: float
    learnt: float
    failures: int = 0


def learn(before: Known | None, answer: Answer, *, now: float, max_age: float) -> Known:
    """What is known after `answer`. max_age: seconds, the most that a file is believed.

    A failure is remembered for minutes only: a hiccup must not close a host for a day, and a dead
    one must not be asked for every URL.
    """
    if not answer.lasting:
        is_old_copy = before is not None and before.content is not None and now - before.learnt <= OLD_COPY_S
        return before._replace(until=now) if before and is_old_copy else Known(answer.content, answer.reason, now, now)
    if answer.content is not None:
        return Known(answer.content, answer.reason, now + believed(answer, max_age), now)
    failures = 1 if before is None else before.failures + 1
    doubled = FAILURE_S * 2.0 ** min(failures - 1, 10)
    until = now + min(max(doubled, answer.pause), LONGEST_FAILURE_S)
    if before is None or before.content is None or now - before.learnt > OLD_COPY_S:
        return Known(None, answer.reason, until, now, failures)
    return before._replace(reason=answer.reason, until=until, failures=failures)


def believed(answer: Answer, max_age: float) -> float:
    """Seconds for which a file that has just come is believed.

    >>> believed(Answer(b"", fresh=3600.0, age=600.0), LONGEST_S)
    3000.0
    """
    lifetime = max_age if answer.fresh is None else min(answer.fresh, max_age)
    return max(lifetime - answer.age, min(SHORTEST_S, max_age))


def age_and_freshness(fields: Iterable[tuple[str, str]], *, now: float) -> tuple[float, float | None]:
    """How old an answer is, and for how long it is fresh, by its fields (RFC 9111, section 4.2), in seconds.

    now: Unix seconds.
    """
    by_name = grouped(fields)
    said = directives(by_name.get("cache-control", ()))
    if "no-store" in said or "no-cache" in said:
        return 0.0, 0.0
    date = date_value(by_name.get("date", ()), received=now)
    return float(age_value(by_name.get("age", ()))), explicit_lifetime(said, by_name.get("expires", ()), date)
