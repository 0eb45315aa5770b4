"""Counters in Redis or Valkey, for several processes and machines."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from kreuz_sync import checks
from kreuz_sync.redis_clients import require_picklable, ways_to
from kreuz_sync.redis_connections import is_named
from kreuz_sync.settings import Single

from .failures import StoreUnavailable
from .store import CounterStore
from .usage import Usage

_LONGEST_MS = 2**63 - 1

# One step on the server, whose clock stands still meanwhile.
# KEYS[1]: the counter. ARGV[1]: the window in ms. ARGV[2]: "repair" or "error".
_SCRIPT = """
local used = redis.pcall('INCR', KEYS[1])
if type(used) == 'table' then
  -- At 2^63 - 1 it can be increased no more, and stays.
  if not string.find(used.err, 'overflow', 1, true) then return used end
  used = 2^53
elseif used > 2^53 then
  used = 2^53 -- from here on a number of Lua is not exact
end
local left = redis.call('PTTL', KEYS[1])
if used == 1 or left == 0 then
  -- At its very end a window is over, though the server keeps it a millisecond longer.
  local set = redis.pcall('SET', KEYS[1], '1', 'PX', ARGV[1])
  if type(set) == 'table' and set.err then
    -- The window is longer than the server can count, and one without an end must not stay behind.
    redis.call('DEL', KEYS[1])
    return set
  end
  return {1, redis.call('PTTL', KEYS[1])}
end
if left < 0 and ARGV[2] == 'repair' then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = redis.call('PTTL', KEYS[1])
end
return {used, left}
"""
_DIGEST = sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()  # the name that a server gives to a script

_usage = tuple.__new__  # what Usage(...) comes to, in half the time


class RedisStore(Single, CounterStore):
    """Counts in Redis or Valkey; all that use one server, with one `namespace`, count together.

    client: a `redis.Redis` or `redis.RedisCluster` (valkey-py's do as well), which stays yours:
    it is neither used to send anything nor closed. The store has connections of its own, to the
    same place and with the same log-in, as many as threads count at once (at most the client's
    `max_connections`). namespace: goes before every key, as `namespace:rl:key`, unless it is
    empty. It is taken as it is.

    timeout: seconds that a hit takes at most, whatever the server does: with the wait for a connection
    while all are in use, connecting, the handshake and the answer. The first hit on a new connection costs
    up to eight round trips, so give a server far away more than that. A client's own shorter time-outs
    hold for each wait. Not bounded by it: looking up a host's name, a credential provider of yours, and asking
    Sentinels, which have the time-outs of their own clients. A hit is never sent twice: one whose answer
    was lost may be counted though it was reported as failed.

    A server that let this time pass is left alone for as long again: hits fail at once meanwhile, so
    that several limits on one store wait once. Then one hit tries, and the others follow once that was
    answered. A server that refuses, or has closed the connections, costs no time and is asked every time:
    each use looks first whether its connection is still open.

    on_missing_expiry: what to do with a counter that has no end, which only somebody else can
    have put there: "repair" gives it one, a whole window from now, in the same step; "error"
    raises StoreUnavailable, and so does every later hit of that key until somebody removes it.

    Windows are counted in whole milliseconds, truncated. Failures are StoreUnavailable with
    the code `redis_store_error`, and as `.detail` `redis_command_failed` (it could not be
    reached, did not answer, or answered with an error), `redis_invalid_window` (below 1 ms),
    `redis_window_too_large`, `redis_invalid_count`, `redis_invalid_pttl` or
    `redis_invalid_reply`.

    In a cluster the node that has a key is asked, always a primary; redirections are followed, within
    the one `timeout`, and a node that failed is gone round once another has its slots. Each node is left
    alone by itself.

    A copy is the same store. It pickles if its client does, which redis-py's own do not: make a
    store in each process. The child of a fork makes its own connections.
    """

    is_shared = True

    def __init__(
        self, client: Any, *, namespace: str = "", timeout: float = 0.5, on_missing_expiry: str = "repair"
    ) -> None:
        self.client = client
        self.namespace = checks.text("namespace", namespace) if namespace != "" else ""
        self.timeout = checks.seconds("timeout", timeout, above=0)
        self.on_missing_expiry: str = checks.one_of("on_missing_expiry", on_missing_expiry, ("repair", "error"))
        self._prefix = f"{self.namespace}:rl:" if self.namespace else "rl:"
        self._mode = _packed(self.on_missing_expiry)
        ways = ways_to(client, self.timeout)
        self._ask, self._close = ways.ask, ways.close

    def increment(self, key: str, window: float) -> Usage:
        """As every store, by the server's clock. Hits are counted exactly up to 2**53, and stay there."""
        window_ms = _whole_ms(window)
        # Encoded here: a client may be set to encode text in another way than the next one.
        name = (self._prefix + key).encode("utf-8", "surrogatepass")
        words = b"$%d\r\n%b\r\n$%d\r\n%d\r\n%b" % (len(name), name, len(str(window_ms)), window_ms, self._mode)
        try:
            reply = self._ask(name, lambda connection: _run_script(connection, words))
        except Exception as error:
            # Only the kind: the text may have the server's address.
            problem = "gave no answer in time" if is_named(error, "TimeoutError") else f"failed: {type(error).__name__}"
            raise _unavailable(f"Redis {problem}", "redis_command_failed") from error
        return _read(reply)

    def close(self) -> None:
        """Close the store's own connections. They are made anew when it is used again."""
        self._close()

    # --- copies -------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        names = ("namespace", "timeout", "on_missing_expiry")
        return {name: getattr(self, name) for name in names}

    def __reduce__(self) -> tuple[Any, ...]:
        require_picklable(self.client, "RedisStore", "make a store in each process")
        return _again, (self.client, self._settings())

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"RedisStore(..., {settings})"


def _again(client: Any, settings: dict[str, Any]) -> RedisStore:
    return RedisStore(client, **settings)


def _packed(*words: str) -> bytes:
    """Words as they are sent. redis-py packs any kind of word, and takes a sixth of a round trip for six of them."""
    return b"".join(b"$%d\r\n%b\r\n" % (len(word.encode()), word.encode()) for word in words)


_BY_NAME = b"*6\r\n" + _packed("EVALSHA", _DIGEST, "1")
_IN_FULL = b"*6\r\n" + _packed("EVAL", _SCRIPT, "1")


def _run_script(connection: Any, words: bytes) -> Any:
    """The script's reply. words: the last three of the command, packed: the counter, and what the script is told."""
    connection.send_packed_command([_BY_NAME + words])
    try:
        return connection.read_response()
    except Exception as error:
        if not is_named(error, "NoScriptError"):
            raise
    # New, restarted or flushed: the server knows the script from here on.
    connection.send_packed_command([_IN_FULL + words])
    return connection.read_response()


def _whole_ms(window: float) -> int:
    try:
        # By way of whole microseconds: 1.001 * 1000 is a little less than 1001.
        window_ms = round(window * 1_000_000) // 1000
    except OverflowError:
        window_ms = _LONGEST_MS + 1
    except (TypeError, ValueError):
        window_ms = 0
    if window_ms < 1:
        raise _unavailable("a window is 1 ms or longer", "redis_invalid_window")
    if window_ms > _LONGEST_MS:
        raise _unavailable("a window is less than 2**63 ms", "redis_window_too_large")
    return window_ms


def _read(reply: object) -> Usage:
    """The two numbers that the script gives, and nothing else."""
    if not isinstance(reply, list) or len(reply) != 2:
        raise _unavailable("the reply is not two numbers", "redis_invalid_reply")
    used, left_ms = reply
    if type(used) is not int or used < 1:
        raise _unavailable("the counter is not a positive number", "redis_invalid_count")
    if type(left_ms) is not int or left_ms < 1:
        raise _unavailable("the counter has no end", "redis_invalid_pttl")
    return _usage(Usage, (used, left_ms / 1000))


def _unavailable(message: str, detail: str) -> StoreUnavailable:
    return StoreUnavailable("redis_store_error", message, detail)
