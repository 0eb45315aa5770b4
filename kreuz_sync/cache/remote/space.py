"""The records of one namespace: what a store does, as steps on the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from zlib import crc32

from kreuz_sync.cache.store import Body, Record, StoreTrouble
from kreuz_sync.clock import SYSTEM_CLOCK

from . import scripts
from .dropping import Dropper
from .held import Held, HeldRecords
from .incoming import Sent, read_up_to
from .index import Index, Limits
from .names import Names, Place, raw
from .outgoing import open_body
from .records import Facts, body_name, head_sum, is_sound, new_value, pack, read_row, unpack
from .secret import Secret
from .wire import Server, Step

_log = logging.getLogger("kreuz_sync.cache")


class Space:
    """Where the records lie on the server.

    piece: bytes of a body that are sent at once; one that is larger lies beside its record. memory:
    bytes for records that were read before. own_secret: one that is not the server's to keep.
    """

    def __init__(
        self, server: Server, names: Names, limits: Limits, *, piece: int, memory: int, own_secret: bytes | None
    ) -> None:
        self.secret = Secret(server, names.secret, limits.ttl, own_secret)
        self.index = Index(server, names, limits, self.secret)
        self.dropper = Dropper(server, names, self.index)
        self._server = server
        self._names = names
        self._limits = limits
        self._piece = piece
        self._held = HeldRecords(memory) if memory else None
        self._has_warned = False

    # --- reading ----------------------------------------------------------------------------

    def read(self, key: str) -> Record | None:
        """See `CacheStore.read`: one round trip, and another one for a body that lies beside its record."""
        place = self._names.place(key)
        held = None if self._held is None else self._held.get(key)
        known = b"" if held is None else held.value
        (answer,) = self._server.run(Step(scripts.READ, place[:2], (place.field, known)))
        if answer is None:
            return None
        record = held.record if held is not None and answer == 1 else self._made(key, place, *answer)
        if record is not None:
            with suppress(StoreTrouble):
                self.index.note(key)
        return record

    def _made(self, key: str, place: Place, value: bytes, *found: bytes) -> Record | None:
        """The record that has `value`; None if it is not there, or not whole."""
        forget = partial(self.dropper.forget, key, value)
        row = read_row(raw(key), value, found)
        body: Body | None = None
        if row is not None:
            body = row.body
            if body is None:
                body = open_body(self._server, self._names.body(place.group, row.name), row.facts, forget)
        elif found[0] == value:
            self._met_damage()
        if row is None or body is None:
            forget()
            return None
        record = Record(row.head, body)
        if self._held is not None:
            self._held.put(key, Held(value, record))
        return record

    def _met_damage(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "a record in Redis is damaged or not ours, and counts as absent", extra={"event": "record_damaged"}
            )

    # --- writing ----------------------------------------------------------------------------

    def write(self, key: str, head: bytes, body: Body, age: float | None) -> bool:
        """See `CacheStore.write_if_current`; without `age` nothing is too old."""
        began = None if age is None else SYSTEM_CLOCK.monotonic() - age
        most = None if self._limits.size is None else self._limits.size - len(head)
        first, rest = (body, None) if isinstance(body, bytes) else (read_up_to(body, self._piece + 1), body)
        if len(first) > self._piece:
            sent = Sent(self._server, partial(self._names.body, self._names.place(key).group), self._piece)
            if sent.send(first, rest, most):
                return self._put(key, head, sent.facts, sent, began)
        elif most is None or len(first) <= most:
            return self._put(key, head, Facts(len(first), crc32(first), 0), first, began)
        self.dropper.delete(key)
        return False

    def _put(self, key: str, head: bytes, facts: Facts, body: bytes | Sent, began: float | None) -> bool:
        """Have the server put a record in its place, and list it; False if it is too old by then, or its body gone."""
        place, value = self._names.place(key), new_value()
        age = b"" if began is None else b"%d" % max(0, (SYSTEM_CLOCK.monotonic() - began) * 1_000_000)
        content, body_key = (body, place.record) if isinstance(body, bytes) else (b"", body.key)
        if isinstance(body, Sent):
            value += body.name
        words = (place.field, value, head_sum(raw(key), head), head, pack(facts), content)
        step = Step(scripts.PUT, (*place[:2], body_key), (*words, self._limits.ttl, age, b"%d" % facts.pieces))
        before, listed = self._server.run(step, self.index.listing(key, value, len(head) + facts.length))
        if isinstance(before, bytes):
            with suppress(StoreTrouble):  # the record is there; what is left to do is about others
                self._listed(listed, *self.dropper.letting_go((place.group, before)))
            return True
        if isinstance(body, Sent):
            body.withdraw()
        self._listed(listed, self.index.unlisting((key, value)))
        return False

    def rewrite_head(self, key: str, head: bytes, expected: bytes | None) -> bool:
        """See `CacheStore.rewrite_head`."""
        place, ttl = self._names.place(key), self._limits.ttl
        condition = (b"", b"") if expected is None else (b"if", expected)
        words = (place.field, new_value(), head_sum(raw(key), head), head, *condition, ttl)
        (answer,) = self._server.run(Step(scripts.REWRITE, place[:2], words))
        if answer is None:
            return False
        value, kept = answer
        facts = unpack(kept)
        steps = [self.index.listing(key, value, len(head) + (0 if facts is None else facts.length))]
        if name := body_name(value):
            body = self._names.body(place.group, name)
            steps.append(Step(b"PEXPIRE", (body,), (ttl,)) if ttl else Step(b"PERSIST", (body,)))
        with suppress(StoreTrouble):
            self._listed(self._server.run(*steps)[0])
        return True

    def _listed(self, answer: list[Any], *steps: Step) -> None:
        """Do what a change of the list has brought to light, and `steps`."""
        is_other, gone = self.index.read(answer)
        if steps:
            self._server.run(*steps)
        if gone:
            self.dropper.drop(*gone)
        if is_other:
            self.secret.renew()

    # --- the others -------------------------------------------------------------------------

    def delete_under(self, prefix: str) -> int:
        """See `CacheStore.delete_under`."""
        count = self.dropper.delete_under(prefix)
        (answer,) = self._server.run(self.secret.watching())
        if self.secret.is_other(answer):
            # The server was begun anew, by somebody with another secret. What others have stored since then for this
            # URI is under a key that we do not know, so all has to go.
            self.secret.renew()
            count += self.dropper.clear_list()
        return count

    def heads(self) -> Iterator[tuple[str, bytes]]:
        """All keys and heads, in the order of their last use. What is on the list and not there is taken off it."""
        for page in self.index.pages():
            places = [self._names.place(key) for key in page]
            steps = (Step(scripts.READ_HEAD, place[:2], (place.field,)) for place in places)
            gone = []
            for key, answer in zip(page, self._server.run(*steps), strict=True):
                if answer is not None and is_sound(raw(key), *answer):
                    yield key, answer[-1]
                else:
                    gone.append((key, b"" if answer is None else answer[0]))
            if gone:
                self._server.run(self.index.unlisting(*gone))
