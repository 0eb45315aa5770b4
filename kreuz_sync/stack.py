"""What a layer is, and how layers become a stack.

A layer is two things. The *setting* holds what is shared (a `Throttle`, a `Retry`); called
with an adapter, it makes the *layer adapter* that wraps it. So one setting can serve several
mounts, several sessions and several threads:

    stack(transport, tracing, cache, retry, throttle)

wraps `transport` so that a request meets the layers in the order written, and the transport
last. The contract of a layer adapter:

- `send` takes requests' own five options and hands on those it does not use, untouched.
- It returns a response whatever its status: a layer that raised on 429 would blind every
  layer outside it. Exceptions are for answers that did not come.
- It never changes the request it was given. To change something it sends a copy
  (`copy_request`), so that a redirect cannot carry away what was added for one host.
- What it holds until the body has been read it gives back with `Response.when_released`.
- `close` reaches the transport, and wakes whoever waits in the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import requests
from requests.adapters import BaseAdapter

from .calls import Call, current
from .errors import KreuzError
from .response import Response, adopt

Layer = Callable[[BaseAdapter], BaseAdapter]


class LayerAdapter(BaseAdapter):
    """An adapter around another one. A layer overrides `send`, and `close` if it has waiters."""

    def __init__(self, inner: BaseAdapter) -> None:
        super().__init__()
        self.inner = inner

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        return self.inner.send(request, **options)

    def close(self) -> None:
        self.inner.close()


def stack(transport: BaseAdapter, *layers: Layer) -> BaseAdapter:
    """Wrap `transport` so that a request meets `layers` in the order written."""
    adapter = transport
    for layer in reversed(layers):
        adapter = layer(adapter)
        if not callable(getattr(adapter, "send", None)):
            raise TypeError(f"layers: {layer!r} made {adapter!r} of an adapter, and not an adapter")
    return adapter


def copy_request(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """A copy whose header fields may be changed. The body is shared: it may be a stream."""
    copy = type(request).__new__(type(request))
    copy.__dict__.update(request.__dict__)
    copy.headers = request.headers.copy()
    return copy


class Stack(BaseAdapter):
    """The adapter that is mounted: the layers around one transport.

    `layers` are the settings, outermost first; `transport` is the innermost layer. It is
    rebuilt from these two when unpickled. Attributes that a stack does not have itself are
    those of the adapter that opens the connections, so that `session.get_adapter(url).poolmanager`
    works as in requests.
    """

    def __init__(self, layers: Sequence[Layer], transport: BaseAdapter) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.transport = transport
        self._head = stack(transport, *self.layers)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float | None, float | None] | None = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: dict[str, str] | None = None,
        **more: Any,
    ) -> Response:
        call = current.get()
        if call is None:  # mounted on a session that is not ours
            token = current.set(Call())
            try:
                return self.send(request, stream, timeout, verify, cert, proxies, **more)
            finally:
                current.reset(token)
        attempts, waited = call.attempts, call.waited
        outer, call.stack = call.stack, self
        try:
            options = {"stream": stream, "timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies, **more}
            response = adopt(self._head.send(request, **options))
        except KreuzError as error:
            error.attempts = error.attempts or call.attempts - attempts
            error.waited = call.waited - waited
            raise
        finally:
            call.stack = outer
        if not isinstance(response, Response):  # a double that only looks like one
            return response
        response.attempts = call.attempts - attempts
        response.waited = call.waited - waited
        # Digest authentication sends its second request through `response.connection`: that
        # one has to wait its host's turn too.
        response.connection = self  # type: ignore[assignment]
        return response

    def close(self) -> None:
        self._head.close()

    @property
    def adapter(self) -> BaseAdapter:
        """The innermost adapter, which opens the connections."""
        adapter = self.transport
        while isinstance(adapter, LayerAdapter):
            adapter = adapter.inner
        return adapter

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "transport" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.adapter, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """What only the innermost adapter has is set there: old code writes `get_adapter(url).max_retries = 3`."""
        if name not in self.__dict__ and "transport" in self.__dict__ and hasattr(self.adapter, name):
            setattr(self.adapter, name, value)
        else:
            super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {"layers": self.layers, "transport": self.transport}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Stack({', '.join(map(repr, (*self.layers, self.transport)))})"
