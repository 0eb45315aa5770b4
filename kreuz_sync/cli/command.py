"""The command `kreuz-sync`: from its arguments (`arguments.py`) to a run of `job.py`, `demo.py` or `cache.py`.

Nothing else imports this file, so that argparse costs only those who use the command.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from kreuz_sync.ssrf import AddressGuard

from . import demo, example_site, job
from .arguments import BAD_USAGE, UsageError, parse
from .fetching import Results, Sink
from .inputs import reason, wanted
from .progress import progress_on
from .saving import INDEX, Folder, JsonLines
from .summary import ending

# The records say all that the log would, and a log in between would tear the display.
_UNHEARD = logging.NullHandler()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process), and give its exit code.

    Raises SystemExit where argparse does: for --help, --version and arguments that it refuses.
    """
    logging.getLogger("kreuz_sync").addHandler(_UNHEARD)
    try:
        with job.interruptible():
            read = parse(sys.argv[1:] if arguments is None else arguments)
            return COMMANDS[read.command](read)
    except UsageError as error:
        job.say(stderr(), f"kreuz-sync: {error}")
        return BAD_USAGE
    except KeyboardInterrupt:  # before there was anything to do, or after
        return job.INTERRUPTED
    finally:
        for stream in (sys.stdout, sys.stderr):
            _let_go(stream)


def _let_go(stream: IO[str] | None) -> None:
    """Spare the interpreter, when it ends, from a last write to a pipe that nobody reads."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


# --- the commands ---------------------------------------------------------------------------


def fetch(arguments: argparse.Namespace) -> int:
    """`kreuz-sync fetch`."""
    if arguments.body and arguments.out:
        raise UsageError("--body writes bodies to standard output, --out to files: give one of the two")
    options = options_of(arguments)
    if not arguments.allow_private:  # an address that the user writes is fine; one that a page leads to may not be
        options = options._replace(guard=AddressGuard(redirects_only=True))
    session = _or_usage(lambda: job.open_session(options))
    with contextlib.ExitStack() as opened:
        urls, total = wanted(arguments.urls, arguments.lists, opened)
        sink: Sink = folder(arguments.out) if arguments.out else JsonLines(raw_stdout(), with_body=arguments.body)
        # Lines of results on the same terminal would tear the display.
        display = progress_on(stderr(), total) if arguments.out or not sys.stdout.isatty() else None
        results = Results([sink], display)
        code = job.carry_out(session, urls, results, workers=options.workers, stream=stderr())
    if code == job.OK and not results.tally.done:
        job.say(stderr(), "kreuz-sync: nothing to fetch: the list has no URLs")
    elif told := ending(results.tally, arguments.out, index=os.path.join(arguments.out or "", INDEX)):
        job.say(stderr(), told)
    return code


def show(arguments: argparse.Namespace) -> int:
    """`kreuz-sync demo`."""
    if arguments.serve:
        return serve(arguments)
    if arguments.port is not None:
        raise UsageError("--port is for --serve")
    options = options_of(arguments)
    sinks = [folder(arguments.out)] if arguments.out else []
    return demo.run(options, sinks, sys.stdout or stderr())


def serve(arguments: argparse.Namespace) -> int:
    """`kreuz-sync demo --serve`."""
    if vars(arguments) != {**vars(parse(["demo"])), "serve": True, "port": arguments.port}:
        raise UsageError("--serve takes --port and no other option: it fetches nothing")
    port = example_site.PORT if arguments.port is None else arguments.port
    try:
        return example_site.serve(port, sys.stdout or stderr())
    except OSError as error:
        raise UsageError(f"port {port} cannot be listened on ({reason(error)}): choose another with --port") from None


def look_into_cache(arguments: argparse.Namespace) -> int:
    """`kreuz-sync cache`."""
    from .cache import cache  # here, because the other commands have no use for a store

    return cache(arguments)


COMMANDS = {"fetch": fetch, "demo": show, "cache": look_into_cache}


def options_of(arguments: argparse.Namespace) -> job.Options:
    """The options that `fetch` and `demo` take. Raises UsageError."""
    names = [name.lower() for name, _ in arguments.headers]
    if arguments.user_agents:
        names.append("user-agent")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the field {twice} is given more than once")
    return job.Options(
        delay=arguments.delay,
        workers=arguments.workers,
        retries=arguments.retries,
        timeout=arguments.timeout,
        max_body=arguments.max_body or None,
        headers=dict(arguments.headers),
        user_agents=tuple(arguments.user_agents),
    )


def _or_usage(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


# --- where results go ---------------------------------------------------------------------


def folder(name: str) -> Folder:
    """Where `--out` writes. Raises UsageError."""
    try:
        return Folder(Path(name))
    except (OSError, ValueError) as error:
        raise UsageError(f"--out {name}: cannot be written to ({reason(error)})") from None


def raw_stdout() -> IO[bytes]:
    """Standard output without a buffer. Raises UsageError if it is closed."""
    if sys.stdout is None:
        raise UsageError("there is no standard output to write to: use --out DIR")
    return open(sys.stdout.fileno(), "wb", buffering=0, closefd=False)


def stderr() -> IO[str]:
    """Standard error; a stream that goes nowhere if it is closed."""
    return sys.stderr if sys.stderr is not None else open(os.devnull, "w")
