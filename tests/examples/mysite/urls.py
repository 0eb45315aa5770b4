"""Its pages."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

closed: list[str] = []  # paths of streams that have been closed


def hello(request: HttpRequest) -> HttpResponse:
    """How many rate limits it met, in the body; the method and what was posted, in a field."""
    context = request.META.get("kreuz_sync.rate_limit")
    answer = HttpResponse(f"met {0 if context is None else len(context.policies)}")
    answer["X-Seen"] = f"{request.method} {request.body.decode()}".strip()
    return answer


class Pieces:
    """A body in two pieces that notes when it is closed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"one, ", b"two"])

    def close(self) -> None:
        closed.append(self.path)


def stream(request: HttpRequest) -> StreamingHttpResponse:
    """What is sent as it comes."""
    return StreamingHttpResponse(Pieces(request.path))


def broken(request: HttpRequest) -> HttpResponse:
    """What becomes a 500."""
    raise ZeroDivisionError


urlpatterns = [path("", hello), path("health", hello), path("stream", stream), path("broken", broken)]
