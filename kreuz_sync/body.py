"""The watch over a body while it is read: cut, too large, undecodable.

Lengths are compared in bytes on the wire, before decoding: that is what Content-Length
counts (RFC 9110, section 8.6). Sizes are limited in decoded bytes: those fill the memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import urllib3
from requests import exceptions as theirs

from .errors import BodyTimeout, BodyTooLarge, DataLoss, SslError, UndecodableBody
from .urls import redact

if TYPE_CHECKING:
    from .response import Response

CHUNK = 64 * 1024
PARTIAL_KEPT = 64 * 1024  # bytes of a cut body that its error keeps
STEP_OF_CODINGS = {1: 4096, 2: 16}  # bytes on the wire, by the number of codings: at most 16 MB decoded

_URLLIB3_VERSION: str = urllib3.__version__  # type: ignore[attr-defined]  # it has one, and does not say so
_DECODES_IN_STEPS = tuple(map(int, _URLLIB3_VERSION.split(".")[:2])) >= (2, 6)
_SWALLOW_DATA = 2  # urllib3's GzipDecoderState for what follows the last member

_LENGTH = re.compile(r"[0-9]{1,18}")


class Limits(NamedTuple):
    """What is asked of a body.

    max_body: decoded bytes, None for no limit. length_tolerance: how many bytes on the wire
    may be missing. watch: called with the response and its decoded body at the end of that, if
    it is no longer than `watched` bytes.
    """

    max_body: int | None = None
    length_tolerance: int = 0
    watch: Callable[[Response, bytes], object] | None = None
    watched: int = 0


NO_LIMITS = Limits()


def has_no_body(response: Response) -> bool:
    """Whether the status or the method says that none follows, whatever the fields say (RFC 9112, section 6.3)."""
    status = response.status_code or 0
    return status < 200 or status in (204, 304) or (response.request is not None and response.request.method == "HEAD")


def expected_length(response: Response) -> int | None:
    """The bytes that the wire owes, None where the answer does not say (RFC 9112, section 6.3)."""
    if has_no_body(response):
        return None
    if "Transfer-Encoding" in response.headers:
        return None
    values = {value.strip() for value in response.headers.get("Content-Length", "").split(",")}
    if len(values) != 1:
        return None
    value = values.pop()
    return int(value) if _LENGTH.fullmatch(value) else None


def refuse_by_length(response: Response) -> None:
    """Raise BodyTooLarge before a byte is read, where the header section says enough."""
    limit = response.limits.max_body
    if limit is None or response.headers.get("Content-Encoding", "identity") != "identity":
        return
    expected = expected_length(response)
    if expected is not None and expected > limit:
        response.close()
        raise _too_large(response, limit)


def read(response: Response) -> None:
    """Read the whole body into `response`, so that a cut one fails the attempt that it belongs to.

    Raises what `Response.iter_content` raises; a DataLoss keeps what had come.
    """
    if response._content is not False:  # a test double, or a layer, gave it whole
        limit = response.limits.max_body
        if limit is not None and len(response._content or b"") > limit:
            raise _too_large(response, limit)
        response.release()
        return
    if response.raw is None:
        return
    if isinstance(response.raw, urllib3.HTTPResponse):
        # Its own check would throw away the bytes that did come; `checked` checks as well.
        response.raw.enforce_content_length = False
    pieces: list[bytes] = []
    try:
        pieces.extend(response.iter_content(CHUNK))
    except DataLoss as error:
        error.partial = b"".join(pieces)[:PARTIAL_KEPT]
        raise
    response._content = b"".join(pieces)


def checked(response: Response, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Hand on `chunks`, and raise the typed error for what goes wrong among them or at their end."""
    limits = response.limits
    decoded = 0
    seen: list[bytes] | None = [] if limits.watch is not None else None
    try:
        for chunk in chunks:
            decoded += len(chunk)
            if limits.max_body is not None and decoded > limits.max_body:
                response.close()
                raise _too_large(response, limits.max_body)
            if seen is not None:
                seen.append(chunk)
                if decoded > limits.watched:
                    seen = None
            yield chunk
    except theirs.ChunkedEncodingError as error:
        raise _data_loss(response, "the body broke off") from _root(error)
    except (ValueError, OverflowError) as error:  # http.client, on sizes of chunks that are none
        response.close()
        raise _data_loss(response, "the body is framed in an impossible way") from error
    except theirs.ContentDecodingError as error:
        text = f"{_what(response)}: the body is not in its Content-Encoding"
        raise UndecodableBody(text, response=response) from _root(error)
    except theirs.SSLError as error:
        raise SslError(f"{_what(response)}: TLS failed in the body", response=response) from _root(error)
    except theirs.ConnectionError as error:  # requests' word for a body that stopped coming
        raise BodyTimeout(f"{_what(response)}: the body stopped coming", response=response) from _root(error)
    else:
        if not response._closed_early:
            _check_end(response)
            if seen is not None and limits.watch is not None:
                limits.watch(response, b"".join(seen))
            if response._when_whole is not None:
                response._when_whole(response)
    finally:
        response.release()


def step(response: Response, wanted: int | None) -> int | None:
    """How many bytes to ask for at a time, where `wanted` is what the reader asked for.

    Before 2.6, urllib3 decodes all of what it takes off the wire at once, a thousand times as
    much for each gzip: then a body that is watched for its size comes in small steps.
    """
    if response.limits.max_body is None:
        return wanted
    coded = response.headers.get("Content-Encoding")
    codings = 0 if coded is None else coded.count(",") + 1
    most = CHUNK if codings == 0 or _DECODES_IN_STEPS else STEP_OF_CODINGS.get(codings, 1)
    return most if wanted is None else min(wanted, most)


def _check_end(response: Response) -> None:
    raw = response.raw
    if not isinstance(raw, urllib3.HTTPResponse) or has_no_body(response):
        return  # only urllib3 counts the bytes on the wire
    expected = expected_length(response)
    received = raw.tell()
    if expected is not None:
        if received < expected - response.limits.length_tolerance:
            raise _data_loss(response, f"{received} of {expected} bytes came")
    elif "Transfer-Encoding" not in response.headers and received and _decoder_wants_more(raw):
        # Neither length nor chunks: the end of the coding is the only mark of the end. (Nothing
        # at all is what many servers send for an empty body, whatever its coding.)
        raise _data_loss(response, "the compressed body broke off")


def _decoder_wants_more(raw: urllib3.HTTPResponse) -> bool:
    """True if the content coding did not come to its own end.

    urllib3 says nothing of this, so its decoder is asked, as long as it has the attribute.
    """
    decoder: Any = getattr(raw, "_decoder", None)
    for one in getattr(decoder, "_decoders", None) or ([decoder] if decoder is not None else []):
        padding = getattr(one, "_state", None) == _SWALLOW_DATA  # after the last member of a gzip body
        if not padding and getattr(getattr(one, "_obj", None), "eof", None) is False:
            return True
    return False


def _data_loss(response: Response, why: str) -> DataLoss:
    return DataLoss(
        f"{_what(response)}: {why}",
        expected=expected_length(response),
        received=response.raw.tell() if isinstance(response.raw, urllib3.HTTPResponse) else None,
        response=response,
    )


def _too_large(response: Response, limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"{_what(response)}: the body is longer than {limit} bytes", limit=limit, response=response)


def _what(response: Response) -> str:
    method = response.request.method if response.request is not None else None
    return f"{method or 'GET'} {redact(response.url or '')}"


def _root(error: theirs.RequestException) -> BaseException | None:
    """urllib3's own error, whose text has no URL; requests wraps it."""
    inner = error.args[0] if error.args else None
    return inner if isinstance(inner, BaseException) else None
