"""Why it cannot be said whether a request is over a limit: one closed family of three.

    RateLimitFailure
    +-- KeyUnavailable    whose request it is cannot be told
    +-- LimitUnavailable  how much is allowed cannot be told
    +-- StoreUnavailable  how much was used cannot be told

Functions and stores of a user's own raise these too. No further kinds: both ends of the wire
answer by kind.
"""

from __future__ import annotations


class RateLimitFailure(Exception):
    """What a rate limit could not find out. Raise one of the three kinds, not this.

    code: a stable word for programs. message: for people who look for the fault; it must carry
    no key, no field value and no address, since it may be logged. detail: a finer word for the
    same fault, "" if there is none.
    """

    code: str
    message: str
    detail: str

    def __init__(self, code: str, message: str = "", detail: str = "") -> None:
        super().__init__(code, message, detail)  # all of them, so that it pickles
        self.code = code
        self.message = message
        self.detail = detail

    def __str__(self) -> str:
        finer = f" ({self.detail})" if self.detail else ""
        return f"{self.code}{finer}: {self.message}" if self.message else f"{self.code}{finer}"


class KeyUnavailable(RateLimitFailure):
    """Whose request it is cannot be told. Never lets a request through."""


class LimitUnavailable(RateLimitFailure):
    """How much is allowed cannot be told. Never lets a request through."""


class StoreUnavailable(RateLimitFailure):
    """The counter could not be increased. What follows is the setting `on_store_failure`."""
