"""What is read off a WSGI environ (PEP 3333), which is what a key, a limit or a skip function is given.

The environ is the request as every WSGI server and framework knows it: `flask.Request(environ)`,
`django.core.handlers.wsgi.WSGIRequest(environ)` and the like make the view of it that you are used to.
Functions read it and leave it as it is; `wsgi.input` is the application's.
"""

from __future__ import annotations

from typing import Any

Environ = dict[str, Any]

# CGI (RFC 3875, section 4.1): these two come without the prefix of the others.
_WITHOUT_PREFIX = frozenset({"CONTENT_TYPE", "CONTENT_LENGTH"})


def field(environ: Environ, name: str) -> str | None:
    """The value of a header field of the request, None if it has none of that `name`.

    Lines of the same name were joined by a comma before, which a WSGI server does. So were those
    of `X_Real_IP` and `X-Real-IP`, which CGI cannot tell apart: have the proxy drop names with an
    underscore (nginx and gunicorn do).

    >>> field({"HTTP_X_API_KEY": "k"}, "X-Api-Key")
    'k'
    """
    variable = name.upper().replace("-", "_")
    value = environ.get(variable if variable in _WITHOUT_PREFIX else f"HTTP_{variable}")
    return value if value is None or isinstance(value, str) else ""


def path_of(environ: Environ) -> str:
    """The path of the request, from the root of the host on, decoded.

    >>> path_of({"SCRIPT_NAME": "/app", "PATH_INFO": "/caf\xc3\xa9"})
    '/app/café'
    """
    path: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    # PEP 3333: bytes, each as the character of its number.
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")
