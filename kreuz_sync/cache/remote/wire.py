"""Steps on their way to the server, and their answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kreuz_sync import fork
from kreuz_sync.cache.store import StoreTrouble
from kreuz_sync.redis_clients import Talk, Ways, is_client, ways_to
from kreuz_sync.redis_connections import is_named

from .scripts import Script

_SCANNED = b"1000"  # keys that the server looks at in one step of a scan, in about a millisecond


class Step(NamedTuple):
    """A command for whoever has `keys`, or a script that touches just these."""

    action: bytes | Script
    keys: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()


class Server:
    """Sends steps and gives their answers. What goes wrong is StoreTrouble, without anything secret in it.

    client: one of redis-py, or a function that makes it. timeout: see `Connections`.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._lock = threading.Lock()  # guards the making of _ways
        self._ways: Ways | None = ways_to(client, timeout) if is_client(client) or not callable(client) else None
        fork.renew_in_child(self)

    def after_fork(self) -> None:
        """In a child: the connections see to themselves."""
        self._lock = threading.Lock()

    def run(self, *steps: Step) -> list[Any]:
        """The answers. One node has them all in one piece; in a cluster each is asked for by itself, in order.

        Bytes, whole numbers, lists of these, or None.
        """
        answers: list[Any] = self._guarded(lambda ways: _all(ways, steps))
        return _sound(answers)

    def scan(self, pattern: bytes) -> Iterator[list[bytes]]:
        """All keys of the server that match, in pieces, some perhaps twice."""
        for ask in self._guarded(lambda ways: ways.everywhere()):
            cursor = b"0"
            while True:
                step = Step(b"SCAN", (), (cursor, b"MATCH", pattern, b"COUNT", _SCANNED))
                cursor, found = _sound(self._guarded(partial(_asked, ask, step)))[0]
                yield found
                if cursor == b"0":
                    break

    def close(self) -> None:
        """Close the connections, which are made anew when they are needed."""
        if self._ways is not None:
            self._ways.close()

    def _guarded(self, action: Callable[[Ways], Any]) -> Any:
        try:
            return action(self._ready())
        except StoreTrouble:
            raise
        except Exception as error:
            raise StoreTrouble(f"Redis {_problem(error)}") from error

    def _ready(self) -> Ways:
        if self._ways is None:
            with self._lock:
                if self._ways is None:
                    client = self._client()
                    try:
                        self._ways = ways_to(client, self._timeout)
                    except (TypeError, ValueError) as error:
                        raise StoreTrouble(str(error)) from error
        return self._ways


def _asked(ask: Callable[[Talk], Any], step: Step, _: Ways) -> list[Any]:
    answers: list[Any] = ask(_talk((step,)))
    return answers


def _sound(answers: list[Any]) -> list[Any]:
    """The answers, unless one of them is an error."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise StoreTrouble(f"Redis {_problem(answer)}") from answer
    return answers


def _all(ways: Ways, steps: tuple[Step, ...]) -> list[Any]:
    """The answers of all steps; up to the first error, where they are sent one by one."""
    if ways.together or len(steps) == 1:
        return list(ways.ask(steps[0].keys[0], _talk(steps)))
    answers = []
    for step in steps:
        answers += ways.ask(step.keys[0], _talk((step,)))
        if isinstance(answers[-1], Exception):
            break
    return answers


def _talk(steps: tuple[Step, ...]) -> Talk:
    """Sends all of `steps`, and reads all of their answers."""

    def talk(connection: Any) -> list[Any]:
        connection.send_packed_command([b"".join(map(_by_name, steps))])
        answers = [_answer(connection) for _ in steps]
        # New, restarted or flushed: the server knows these scripts from here on.
        unknown = [place for place, answer in enumerate(answers) if is_named(answer, "NoScriptError")]
        if unknown:
            connection.send_packed_command([b"".join(_in_full(steps[place]) for place in unknown)])
            for place in unknown:
                answers[place] = _answer(connection)
        return answers

    return talk


def _answer(connection: Any) -> Any:
    """The next answer; an error of the server's is one too, but for a node's word where else to ask."""
    try:
        return connection.read_response()
    except Exception as error:
        if not is_named(error, "ResponseError") or is_named(error, "AskError"):
            raise
        return error


def _by_name(step: Step) -> bytes:
    if isinstance(step.action, bytes):
        return _packed(step.action, *step.keys, *step.words)
    return _packed(b"EVALSHA", step.action.digest, b"%d" % len(step.keys), *step.keys, *step.words)


def _in_full(step: Step) -> bytes:
    assert isinstance(step.action, Script)
    return _packed(b"EVAL", step.action.text, b"%d" % len(step.keys), *step.keys, *step.words)


def _packed(*words: bytes) -> bytes:
    # redis-py packs any kind of word, and takes a sixth of a round trip for six of them.
    return b"*%d\r\n%b" % (len(words), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words]))


def _problem(error: Exception) -> str:
    """What happened, by the kind of error: its text may have an address, a name or a key."""
    if is_named(error, "TimeoutError"):
        return "gave no answer in time"
    kind = type(error).__name__
    code = str(error).split(" ", 1)[0]
    is_code = kind == "ResponseError" and code.isalpha() and code.isupper()
    return f"failed: {code if is_code else kind}"
