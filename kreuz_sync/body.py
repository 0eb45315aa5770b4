"""The watch over a body while it is read: cut, too large, undecodable.

Lengths are compared in bytes on the wire, before decoding: that is what Content-Length
counts (RFC 9110, section 8.6). Sizes are limited in decoded bytes: those fill the memory.
"""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import urllib3
from requests import exceptions as theirs
from urllib3.exceptions import InvalidChunkLength

from .errors import BodyTimeout, BodyTooLarge, BrokenFraming, DataLoss, SslError, UndecodableBody
from .fields import text
from .urls import redact
from .wire_errors import chain

if TYPE_CHECKING:
    from .response import Response

CHUNK = 64 * 1024
MISFRAMED = "the body is framed in an impossible way"
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


def drop_absent_chunks(response: Response) -> None:
    """Keep everybody from waiting for the chunks of a 304, or 204, that says it has some: none will come.

    http.client looks at the fields alone. What a server sends after all is found on the connection before that is
    used again.
    """
    raw: Any = response.raw
    if not has_no_body(response) or not getattr(raw, "chunked", False):
        return
    raw.chunked = False
    wire = getattr(raw, "_original_response", None)
    if wire is not None:
        wire.chunked = False


def expected_length(response: Response) -> int | None:
    """The bytes that the wire owes, None where the answer does not say (RFC 9112, section 6.3)."""
    if has_no_body(response):
        return None
    if _is_chunked(response):
        return None
    values = {value.strip() for value in text(response.headers, "Content-Length").split(",")}
    if len(values) != 1:
        return None
    value = values.pop()
    return int(value) if _LENGTH.fullmatch(value) else None


def _is_chunked(response: Response) -> bool:
    return "chunked" in text(response.headers, "Transfer-Encoding").lower()


def is_over(response: Response) -> bool:
    """True if nothing of the body is to come any more: it has been read, or there is none."""
    return (
        response._content_consumed
        or response._content is not False
        or response.raw is None
        or has_no_body(response)
        or expected_length(response) == 0
    )


def is_complete(response: Response) -> bool:
    """True if a stream was read to its end, by whatever way, and its end was that of the body."""
    if response._raw_ended is not None:
        return response._raw_ended
    return response._content_consumed and not getattr(response.raw, "length_remaining", None)


def release_with_raw(response: Response) -> None:
    """Have `response.release()` called when urllib3 gives the connection back: at the end of a body.

    For readers of `response.raw` itself (`shutil.copyfileobj(response.raw, file)`), which we see
    nothing else of. An iteration of ours goes on to check the body, and releases after that.
    """
    if not isinstance(response.raw, urllib3.HTTPResponse):
        return
    # Weak: a cycle would keep the sockets of forgotten responses until the next garbage collection.
    watching, wire = weakref.ref(response), weakref.ref(response.raw)
    before = vars(response.raw).get("release_conn")

    def release_conn() -> None:
        raw, response = wire(), watching()
        if before is not None:
            before()
        elif raw is not None:
            type(raw).release_conn(raw)
        if raw is None or response is None:
            return
        if response._raw_ended is None:
            response._raw_ended = not response._closed_early and _came_to_its_end(raw)
        if not response._iterating:
            response.release()

    vars(response.raw)["release_conn"] = release_conn


def _came_to_its_end(raw: urllib3.HTTPResponse) -> bool:
    """True if a connection is given back for the end of its body, not for an error or a reader's change of mind."""
    # urllib3 counts what is read only after it has given the connection back: http.client knows.
    wire: Any = getattr(raw, "_original_response", None)
    ended = wire is not None and wire.isclosed() and not getattr(wire, "length", None)  # a double may have none
    return bool(ended) and sys.exc_info()[0] is None


def refuse_by_length(response: Response) -> None:
    """Raise BodyTooLarge before a byte is read, where the header section says enough."""
    limit = response.limits.max_body
    if limit is None or text(response.headers, "Content-Encoding") not in ("", "identity"):
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


def checked(response: Response, chunks: Iterable[bytes], asked: int | None = None) -> Iterator[bytes]:
    """Hand on `chunks`, of `asked` bytes, and raise the typed error for what goes wrong among them or at their end."""
    limits = response.limits
    response._iterating = True
    peeked = is_well = False
    decoded = 0
    seen: list[bytes] | None = [] if limits.watch is not None else None
    try:
        for chunk in chunks:
            decoded += len(chunk)
            if limits.max_body is not None and decoded > limits.max_body:
                response._broke = BodyTooLarge
                response.close()
                raise _too_large(response, limits.max_body)
            if seen is not None:
                seen.append(chunk)
                if decoded > limits.watched:
                    seen = None
            yield chunk
    except GeneratorExit:
        peeked = True  # the reader may go on with what is left
        raise
    except theirs.ChunkedEncodingError as error:
        if _is_misframed(error):
            raise _data_loss(response, MISFRAMED, BrokenFraming) from _root(error)
        raise _data_loss(response, "the body broke off") from _root(error)
    except (ValueError, OverflowError) as error:  # http.client, on sizes of chunks that are none
        response._broke = BrokenFraming
        response.close()
        if asked is not None and asked < 0:
            raise  # the reader's own number
        raise _data_loss(response, MISFRAMED, BrokenFraming) from error
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
            response._raw_ended = True  # also where `raw` could not tell: read in an `except` block, say
            if seen is not None and limits.watch is not None:
                limits.watch(response, b"".join(seen))
            if response._when_whole is not None:
                response._when_whole(response)
        is_well = True
    finally:
        if not (is_well or peeked):
            response._broke = sys.exc_info()[0]
        response._iterating = False
        if not peeked or response._raw_ended is not None:
            response.release()


def step(response: Response, wanted: int | None) -> int | None:
    """How many bytes to ask for at a time, where `wanted` is what the reader asked for.

    Before 2.6, urllib3 decodes all of what it takes off the wire at once, a thousand times as
    much for each gzip: then a body that is watched for its size comes in small steps.
    """
    if response.limits.max_body is None:
        return wanted
    coding = text(response.headers, "Content-Encoding")
    codings = coding.count(",") + 1 if coding else 0
    if wanted is not None and wanted < 0:
        wanted = None  # as in urllib3 2
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
    elif not _is_chunked(response) and received and _decoder_wants_more(raw):
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


def _is_misframed(error: BaseException) -> bool:
    """True if a chunk's size is none; an empty one is a body that was cut before it."""
    return any(isinstance(link, InvalidChunkLength) and link.length for link in chain(error))


def _data_loss(response: Response, why: str, kind: type[DataLoss] = DataLoss) -> DataLoss:
    return kind(
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
