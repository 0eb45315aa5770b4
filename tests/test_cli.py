"""The command line: its arguments, and the command itself, run as a user runs it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3

from kreuz_sync.cli import arguments as reading
from kreuz_sync.cli import command as cli
from kreuz_sync.cli import inputs, job
from kreuz_sync.cli.saving import INDEX
from kreuz_sync.ssrf import AddressGuard
from kreuz_sync.version import __version__

from .loopback import Server, answer, cut, redirect, sequence, silent

ROOT = Path(__file__).resolve().parent.parent
GUARD_S = 30  # no run here takes longer, whatever goes wrong
SECRET = "open-sesame"


# --- arguments ------------------------------------------------------------------------------


class TestNumbers:
    """Seconds, counts and sizes."""

    @pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("0.25", 0.25), ("1e1", 10.0), ("86400", 86400.0)])
    def test_seconds(self, text: str, value: float) -> None:
        assert reading.seconds(0)(text) == value

    @pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "1e9", "1,5", "0.2s"])
    def test_what_is_no_number_of_seconds(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="seconds are wanted, 0 to 86400"):
            reading.seconds(0)(text)

    @pytest.mark.parametrize("text", ["", "x", "0", "257", "-1", "1.5", "1e2", "٣", "9" * 5000])
    def test_what_is_no_number_of_workers(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="a whole number is wanted, 1 to 256"):
            reading.count(1, 256)(text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [("0", 0), ("5000", 5000), ("20k", 20_000), ("20K", 20_000), ("100M", 100_000_000), ("2GB", 2_000_000_000)],
    )
    def test_sizes(self, text: str, value: int) -> None:
        assert reading.size(text) == value

    @pytest.mark.parametrize("text", ["", "k", "-1", "1.5M", "1T", "1 M", "9" * 5000])
    def test_what_is_no_size(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="a size is wanted"):
            reading.size(text)


class TestFields:
    """Header fields."""

    @pytest.mark.parametrize(
        ("text", "field"),
        [
            ("Accept: text/html", ("Accept", "text/html")),
            ("X-Empty:", ("X-Empty", "")),
            ("Authorization:Basic a:b", ("Authorization", "Basic a:b")),
        ],
    )
    def test_name_and_value(self, text: str, field: tuple[str, str]) -> None:
        assert reading.header(text) == field

    @pytest.mark.parametrize(
        "text",
        ["", f"Authorization {SECRET}", f": {SECRET}", f"A B: {SECRET}", f"A: {SECRET}\r\nB: x", f"A: {SECRET}€"],
    )
    def test_an_error_does_not_show_the_value(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError) as caught:
            reading.header(text)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("text", ["", "  ", "a\nb", "€"])
    def test_a_user_agent_is_a_field_value(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError):
            reading.user_agent(text)

    @pytest.mark.parametrize(
        "given", [["--header", "A: 1", "--header", "a: 2"], ["--header", "User-Agent: a", "--user-agent", "b"]]
    )
    def test_a_field_is_given_once(self, given: list[str]) -> None:
        arguments = reading.parser().parse_args(["fetch", "http://a.test/", *given])
        with pytest.raises(cli.UsageError, match="more than once"):
            cli.options_of(arguments)


class TestOptions:
    """What a run works with."""

    def test_defaults(self) -> None:
        options = cli.options_of(reading.parser().parse_args(["fetch", "http://a.test/"]))
        assert options == job.Options(0.2, 16, 2, 30.0, 100_000_000, {}, ())

    def test_everything(self) -> None:
        given = "--delay 1 --workers 2 --retries 3 --timeout 4 --max-body 0 --user-agent a --user-agent b --header A:1"
        options = cli.options_of(reading.parser().parse_args(["demo", *given.split()]))
        assert options == job.Options(1.0, 2, 3, 4.0, None, {"A": "1"}, ("a", "b"))

    def test_the_session_takes_them(self) -> None:
        options = job.Options(0.5, 100, 3, 4.0, 1000, {"A": "1"}, ("a", "b"))
        with job.open_session(options) as session:
            assert session.headers["A"] == "1"
            assert session.timeout == 4.0
            assert "delay=0.5" in repr(session.throttle)


BAD_USAGE = [
    ([], "COMMAND"),
    (["serve"], "serve"),
    (["fetch"], "nothing to fetch"),
    (["fetch", "--from", "no/such/file"], "No such file"),
    (["fetch", "--from", "."], "directory"),
    (["fetch", "-", "--from", "-"], "read once"),
    (["fetch", "http://a.test/", "--delay", "soon"], "--delay"),
    (["fetch", "http://a.test/", "--workers", "0"], "--workers"),
    (["fetch", "http://a.test/", "--retries", "-1"], "--retries"),
    (["fetch", "http://a.test/", "--timeout", "0"], "--timeout"),
    (["fetch", "http://a.test/", "--max-body", "big"], "--max-body"),
    (["fetch", "http://a.test/", "--head", "A: 1"], "--head"),
    (["fetch", "http://a.test/", "--header", SECRET], "--header"),
    (["fetch", "http://a.test/", "--out", __file__], "--out"),
    (["fetch", "http://a.test/", "--out", "a\0b"], "--out"),
    (["fetch", "http://a.test/", "--out", "x", "--body"], "one of the two"),
    (["fetch", "--bogus", "http://a.test/"], "see kreuz-sync fetch --help"),
    (["--bogus"], "see kreuz-sync --help"),
    (["http://a.test/x"], "kreuz-sync fetch http://a.test/x"),
    ([f"https://me:{SECRET}@a.test/x"], "kreuz-sync fetch https://REDACTED@a.test/x"),
    (["demo", "http://a.test/"], "http://a.test/"),
    (["demo", "--bogus"], "see kreuz-sync demo --help"),
    (["demo", "--port", "8000"], "--serve"),
    (["demo", "--serve", "--port", "65536"], "0 to 65535"),
    (["demo", "--serve", "--delay", "1"], "no other option"),
    (["cache"], "see kreuz-sync cache --help"),
    (["cache", "list", "no/such/folder"], "no folder of a cache"),
    (["cache", "list", "x", "--bogus"], "see kreuz-sync cache list --help"),
]


class TestBadUsage:
    """Wrong arguments."""

    @pytest.mark.parametrize(("arguments", "word"), BAD_USAGE)
    def test_one_line_says_what_is_wrong(
        self, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert code_of(arguments) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert word in told.err
        assert SECRET not in told.err

    @pytest.mark.parametrize(
        ("name", "word"),
        [("fetch", "every URL was fetched"), ("demo", "as it should"), ("cache", "FOLDER is no cache")],
    )
    def test_help_has_the_exit_codes_of_its_command(
        self, name: str, word: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert code_of([name, "--help"]) == 0
        assert word in capsys.readouterr().out.partition("exit codes:")[2]

    def test_the_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert code_of(["--version"]) == 0
        assert capsys.readouterr().out == f"kreuz-sync {__version__}\n"


def code_of(arguments: list[str]) -> int:
    """The exit code, which argparse gives in a way of its own."""
    try:
        return cli.main(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


# --- the command ----------------------------------------------------------------------------


class Ended:
    """A run that is over."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()
        assert "Traceback" not in self.err
        assert "Warning" not in self.err

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The records on standard output, in the order of the list."""
        return sorted(map(json.loads, self.out.splitlines()), key=lambda line: line["number"])


_started: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """A test that fails half-way leaves no process behind."""
    yield
    while _started:
        process = _started.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


# urllib3 1.26 leaves the socket of a request that is interrupted to the garbage collector.
_LEFT_BY_URLLIB3 = ["-W", "ignore::ResourceWarning"] if urllib3.__version__.startswith("1.") else []


def start(*arguments: str, **how: Any) -> subprocess.Popen[bytes]:
    """Run the command. Warnings are errors."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", *_LEFT_BY_URLLIB3, "-m", "kreuz_sync", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
    )
    _started.append(process)
    return process


def end(process: subprocess.Popen[bytes], given: bytes = b"") -> Ended:
    """Wait for a run's end, and end it if it does not."""
    with process:
        try:
            out, err = process.communicate(given, timeout=GUARD_S)
        except BaseException:
            process.kill()
            raise
    return Ended(process.returncode, out or b"", err or b"")


def command(*arguments: str, given: bytes = b"") -> Ended:
    return end(start(*arguments), given)


def until(happened: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + GUARD_S
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@pytest.fixture
def site(server: Server) -> Server:
    """Pages, and some trouble."""
    server.route("/page*", answer(body="a page", content_type="text/html"))
    server.route("/stuck", silent())
    return server


class TestFetch:
    """Lines of JSON on standard output, a summary on standard error."""

    def test_a_page(self, site: Server) -> None:
        ran = command("fetch", site.url("/page"))
        (line,) = ran.lines
        assert ran.code == 0
        wanted = {"url": site.url("/page"), "status": 200, "tag": None, "bytes": 6, "content_type": "text/html"}
        assert line | wanted == line
        assert "body" not in line

    def test_the_body_if_it_is_asked_for(self, site: Server) -> None:
        assert command("fetch", "--body", site.url("/page")).lines[0]["body"] == "a page"

    def test_some_that_failed_are_exit_code_1(self, site: Server) -> None:
        ran = command(
            "fetch", "--delay", "0", site.url("/page"), site.url("/no-page"), "nonsense", "http://127.0.0.1:1/"
        )
        assert ran.code == 1
        assert [line["tag"] for line in ran.lines] == [None, "not_found", "invalid_url", "connection_refused"]
        assert all(line["error"] for line in ran.lines[1:])

    @pytest.mark.parametrize(
        ("url", "hint"),
        [
            ("127.0.0.1:8800/a", "write http:// or https:// in front"),
            ("a.test/b", "write http:// or https:// in front"),
            (f"me:{SECRET}@a.test/", "write http:// or https:// in front"),
            ("ftp://a.test/", "only http:// and https://"),
        ],
    )
    @pytest.mark.slow
    def test_what_is_no_url_says_what_is_missing(self, url: str, hint: str) -> None:
        """In its line, and at the end of the run."""
        ran = command("fetch", url)
        assert ran.lines[0]["tag"] == "invalid_url"
        assert hint in ran.lines[0]["error"]
        assert hint in ran.err
        assert SECRET not in ran.out + ran.err

    def test_what_is_retried_is_told(self, site: Server) -> None:
        url = site.route("/busy", sequence(503, cut(b"a page", 3), answer(body="a page")))
        ran = command("fetch", "--delay", "0", url)
        assert ran.code == 0
        (line,) = ran.lines
        assert (line["attempts"], line["retried"]) == (3, ["server_error", "data_loss"])
        assert line["waited"] > 0.25

    def test_a_redirect_has_its_final_url(self, site: Server) -> None:
        url = site.route("/old", redirect("/page"))
        (line,) = command("fetch", "--delay", "0", url).lines
        assert (line["final_url"], line["attempts"]) == (site.url("/page"), 2)

    def test_private_addresses_may_be_asked_for_and_redirect_among_themselves(self, site: Server) -> None:
        url = site.route("/old", redirect(site.url("/page", host="127.0.0.2")))
        assert command("fetch", "--delay", "0", url).lines[0]["status"] == 200

    @pytest.mark.parametrize("allowed", [False, True])
    def test_a_public_page_leads_to_none_unless_that_is_allowed(
        self, site: Server, allowed: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All hosts of a test are private, so 127.0.0.1 is made public."""
        monkeypatch.setattr(cli, "AddressGuard", partial(AddressGuard, private=["127.0.0.2"]))
        url = site.route("/old", redirect(site.url("/page", host="127.0.0.2")))
        code = cli.main(["fetch", "--delay", "0", *(["--allow-private"] if allowed else []), url])
        told = capfd.readouterr()
        line = json.loads(told.out)
        assert (code, line["tag"]) == ((0, None) if allowed else (1, "address_blocked"))
        assert [one.path for one in site.requests] == ["/old", "/page"][: 1 + allowed]
        assert ("--allow-private" in told.err) is not allowed

    def test_a_body_that_is_too_large(self, site: Server) -> None:
        (line,) = command("fetch", "--max-body", "5", site.url("/page")).lines
        assert line["tag"] == "body_too_large"

    def test_a_server_that_does_not_answer(self, site: Server) -> None:
        (line,) = command("fetch", "--timeout", "0.1", "--retries", "0", site.url("/stuck")).lines
        assert (line["tag"], line["attempts"]) == ("read_timeout", 1)

    def test_the_pace_is_kept(self, site: Server) -> None:
        """As the server saw it, on a machine that may be busy. Without a pace it is a few thousandths of a second."""
        command("fetch", "--delay", "0.1", *(site.url(f"/page/{number}") for number in range(5)))
        times = [request.at for request in site.requests]
        assert times[-1] - times[0] >= 0.5 * 0.4

    def test_fields_and_agents_are_sent(self, site: Server) -> None:
        urls = [site.url(f"/page/{number}") for number in range(4)]
        agents = ["--user-agent", "a/1", "--user-agent", "b/2"]
        command("fetch", "--delay", "0", "--header", "Accept-Language: en", *agents, *urls)
        assert {request.fields["Accept-Language"] for request in site.requests} == {"en"}
        assert sorted(request.fields["User-Agent"] for request in site.requests) == ["a/1", "a/1", "b/2", "b/2"]


class TestLists:
    """Where URLs come from."""

    def test_a_file_and_standard_input_and_arguments(self, site: Server, tmp_path: Path) -> None:
        listed = tmp_path / "list"
        listed.write_bytes(f"\ufeff# pages\n\n{site.url('/page/2')}\r\n".encode())
        given = f"{site.url('/page/1')}\n  # no more\n".encode()
        ran = command("fetch", "--delay", "0", "-", site.url("/page/0"), "--from", str(listed), given=given)
        assert [line["url"] for line in ran.lines] == [site.url(f"/page/{number}") for number in (1, 0, 2)]

    def test_an_empty_list_is_nothing_to_do(self) -> None:
        ran = command("fetch", "-")
        assert (ran.code, ran.out) == (0, "")
        assert ran.err == "kreuz-sync: nothing to fetch: the list has no URLs\n"

    def test_garbage_is_one_error_a_line(self) -> None:
        ran = command("fetch", "-", given=b"\xff\xfe\x00\n" * 3 + b"x" * 100_000 + b"\n\x1b[31m\n")
        assert ran.code == 1
        assert [line["tag"] for line in ran.lines] == ["invalid_url"] * 5
        assert "\x1b" not in ran.out + ran.err

    def test_urls_are_fetched_before_the_list_is_complete(self, site: Server) -> None:
        process = start("fetch", "-")
        assert process.stdin is not None
        process.stdin.write(f"{site.url('/page')}\n".encode())
        process.stdin.flush()
        until(lambda: site.requests)
        assert end(process).code == 0

    def test_hosts_take_turns(self, site: Server) -> None:
        """The list has all pages of one host first; one worker fetches them in turn."""
        hosts = ["127.0.0.1", "127.0.0.2"]
        urls = [site.url(f"/page/{number}", host=host) for host in hosts for number in range(3)]
        # The first may be on its way before the second host is known.
        command("fetch", "--delay", "0", "--workers", "1", site.url("/page/first", host="127.0.0.3"), *urls)
        assert [request.host.split(":")[0] for request in site.requests[-4:]] == [*hosts, *hosts]


class TestTotal:
    """How many URLs there are, where that can be known before they are fetched."""

    @pytest.fixture
    def listed(self, tmp_path: Path) -> str:
        path = tmp_path / "list"
        path.write_bytes("\ufeff# pages\n\nhttp://a.test/ü\nhttp://a.test/2\n".encode())
        return str(path)

    def test_arguments_and_files_are_counted(self, listed: str) -> None:
        with contextlib.ExitStack() as opened:
            urls, total = inputs.wanted(["http://b.test/"], [listed, listed], opened)
            pages = ["http://a.test/ü", "http://a.test/2"]
            assert list(urls) == ["http://b.test/", *pages, *pages]
        assert total == 5

    def test_a_pipe_is_not_known_before_its_end(self, listed: str) -> None:
        ours, theirs = os.pipe()
        os.close(theirs)
        with open(ours, encoding="utf-8") as pipe:
            assert inputs.counted(pipe) is None

    def test_nor_is_a_very_large_file_read_twice(self, listed: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inputs, "MOST_COUNTED", 10)
        with contextlib.ExitStack() as opened:
            assert inputs.wanted(["http://b.test/"], [listed], opened)[1] is None

    def test_it_is_shown_on_a_terminal(self, site: Server, tmp_path: Path) -> None:
        """By tqdm's bar, or by the plain count."""
        listed = tmp_path / "list"
        listed.write_text("".join(f"{site.url(f'/page/{number}')}\n" for number in range(3)))
        seen = on_terminal("fetch", "--out", str(tmp_path / "pages"), "--from", str(listed))
        assert "/3 [" in seen or "of 3 done" in seen


class TestFolder:
    """--out."""

    def test_every_page_is_a_file_and_the_index_says_which(self, site: Server, tmp_path: Path) -> None:
        site.route("/data", answer(body="{}", content_type="application/json"))
        urls = [site.url("/page?x=1"), site.url("/page?x=2"), site.url("/data"), site.url("/no-page")]
        ran = command("fetch", "--delay", "0", "--out", str(tmp_path / "pages"), *urls)
        assert (ran.code, ran.out) == (1, "")
        index = [json.loads(line) for line in (tmp_path / "pages" / INDEX).read_text().splitlines()]
        files = {line["url"]: line["file"] for line in index}
        assert [Path(files[url]).suffix for url in urls[:3]] == [".html", ".html", ".json"]
        assert files[urls[3]] is None
        assert len(list((tmp_path / "pages").iterdir())) == 4
        assert (tmp_path / "pages" / files[urls[2]]).read_text() == "{}"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_full_disk_ends_the_run(self, site: Server) -> None:
        with open("/dev/full", "wb") as full:
            ran = end(start("fetch", site.url("/page"), site.url("/stuck"), stdout=full))
        assert ran.code == 1
        assert "No space left" in ran.err

    def test_the_last_lines_say_what_failed(self, site: Server, tmp_path: Path) -> None:
        host = site.url("").removeprefix("http://")
        urls = [site.url("/page"), f"http://me:{SECRET}@{host}/no-page?token={SECRET}"]
        ran = command("fetch", "--delay", "0", "--out", str(tmp_path), *urls)
        assert ran.err.splitlines()[-2:] == [
            f'1 of 2 fetched into {tmp_path}; the others: see "error" in {tmp_path / INDEX}',
            f"  not_found  http://REDACTED@{host}/no-page?token=REDACTED",
        ]

    def test_a_run_without_errors_says_so_too(self, site: Server, tmp_path: Path) -> None:
        ran = command("fetch", "--out", str(tmp_path), site.url("/page"))
        assert ran.err.splitlines()[-1] == f"1 of 1 fetched into {tmp_path}"

    def test_a_second_run_adds_to_the_index(self, site: Server, tmp_path: Path) -> None:
        """It fetches what is there already, too."""
        for _ in range(2):
            command("fetch", "--delay", "0", "--out", str(tmp_path), site.url("/page"), site.url("/page?2"))
        assert len(site.requests) == len((tmp_path / INDEX).read_text().splitlines()) == 4


class TestSummary:
    """Standard error."""

    def test_a_row_for_every_host(self, site: Server) -> None:
        ran = command(
            *("fetch", "--delay", "0", site.url("/page"), site.url("/no-page")), site.url("/page", host="127.0.0.2")
        )
        rows = [line.split() for line in ran.err.splitlines()]
        assert [row[:4] for row in rows[1:4]] == [
            ["127.0.0.1", "2", "1", "2"],
            ["127.0.0.2", "1", "1", "1"],
            ["all", "3", "2", "3"],
        ]
        assert rows[1][-2:] == ["not_found", "1"]

    def test_what_failed_is_named_after_it(self, site: Server) -> None:
        ran = command("fetch", "--delay", "0", site.url("/page"), site.url("/no-page"))
        assert ran.err.splitlines()[-2:] == [
            '1 of 2 fetched; the others: see "error" in the lines of JSON',
            f"  not_found  {site.url('/no-page')}",
        ]

    def test_a_run_without_errors_ends_with_the_table(self, site: Server) -> None:
        assert len(command("fetch", site.url("/page")).err.splitlines()) == 2

    def test_backoffs_are_counted(self, site: Server) -> None:
        url = site.route("/busy", sequence(answer(429, fields={"Retry-After": "0"}), 200))
        ran = command("fetch", "--delay", "0.01", url)
        assert ran.err.splitlines()[1].split()[5] == "1"

    def test_no_progress_in_a_pipe(self, site: Server) -> None:
        assert "\r" not in command("fetch", site.url("/page")).err

    def test_progress_on_a_terminal(self, site: Server, tmp_path: Path) -> None:
        seen = on_terminal("fetch", "--out", str(tmp_path), *(site.url(f"/page/{number}") for number in range(3)))
        assert "\r" in seen.replace("\r\n", "")
        assert "Traceback" not in seen
        assert seen.splitlines()[-2].split()[:3] == ["127.0.0.1", "3", "3"]


def on_terminal(*arguments: str) -> str:
    """What the command writes on a terminal."""
    pytest.importorskip("pty")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\x00\x00\x00\x00")  # 24 lines of 80
    process = start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:  # how a terminal says that the other side is closed
        pass
    os.close(ours)
    process.wait(GUARD_S)
    return seen.decode()


class TestSecrets:
    """Credentials of the command line and of URLs appear in nothing that is written."""

    @pytest.mark.slow
    def test_they_are_sent_and_not_shown(self, site: Server, tmp_path: Path) -> None:
        host = site.url("").removeprefix("http://")
        urls = [
            *(f"http://me:{SECRET}@{host}{path}" for path in ("/page", "/no-page", "/stuck")),
            *(f"http://{host}/page?token={SECRET}", f"http://me:{SECRET}@127.0.0.1:1/", f"http://me:{SECRET}@[::1/"),
            *(f"me:{SECRET}@a.test/", f"http://me:x#{SECRET}@a.test/", f"ftp://me:{SECRET}@a.test/"),
        ]
        options = ["--delay", "0", "--retries", "1", "--timeout", "0.2"]
        fields = ["--header", f"Authorization: Bearer {SECRET}", "--header", f"X-Api-Key: {SECRET}"]
        for out in ([], ["--out", str(tmp_path)]):
            ran = command("fetch", *options, *fields, *out, *urls)
            assert ran.code == 1
            written = "".join(path.name + path.read_text() for path in tmp_path.iterdir())
            assert SECRET not in ran.out + ran.err + written
        assert {request.fields["X-Api-Key"] for request in site.requests} == {SECRET}


@pytest.fixture
def interrupts_reach_children() -> Iterator[None]:
    """A shell that runs tests in the background has SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
@pytest.mark.usefixtures("interrupts_reach_children")
class TestInterrupt:
    """Ctrl-C, and SIGTERM."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.slow
    def test_files_that_are_there_are_whole(self, site: Server, tmp_path: Path, number: int) -> None:
        """Some pages are done, one never answers, the others wait for their turn, which is far off."""
        size = 3_000_000
        site.route("/large*", answer(body=b"x" * size, content_type="text/plain"))
        urls = [site.url(f"/large/{number}") for number in range(500)]
        urls.insert(3, site.url("/stuck"))
        process = start("fetch", "--delay", "0.03", "--out", str(tmp_path / "pages"), *urls)
        until(lambda: len(list((tmp_path / "pages").glob("*.txt"))) > 4)
        os.kill(process.pid, number)
        ran = end(process)
        assert ran.code == 130
        assert "interrupted" in ran.err
        files = [path for path in (tmp_path / "pages").iterdir() if path.name != INDEX]
        assert {(path.suffix, path.stat().st_size) for path in files} == {(".txt", size)}
        index = [json.loads(line) for line in (tmp_path / "pages" / INDEX).read_text().splitlines()]
        assert {line["file"] for line in index} == {path.name for path in files}
        assert ran.err.splitlines()[1].split()[1] == str(len(index))

    def test_who_waits_for_a_turn_is_woken(self, site: Server) -> None:
        """The turn is a day off."""
        process = start("fetch", "--delay", "86400", site.url("/page/1"), site.url("/page/2"))
        until(lambda: site.requests)
        os.kill(process.pid, signal.SIGINT)
        assert end(process).code == 130

    def test_who_waits_for_a_list_is_woken(self, site: Server) -> None:
        process = start("fetch", "-")
        assert process.stdin is not None
        process.stdin.write(f"{site.url('/page')}\n".encode())
        process.stdin.flush()
        until(lambda: site.requests)
        os.kill(process.pid, signal.SIGINT)
        ran = end(process)
        assert ran.code == 130

    def test_a_reader_that_does_not_read_holds_up_nothing(self, site: Server) -> None:
        """As a pager does. A second interrupt ends the process on the spot if need be."""
        site.route("/large*", answer(body=b"x" * 1_000_000))
        process = start("fetch", "--body", "--delay", "0", *(site.url(f"/large/{number}") for number in range(20)))
        until(lambda: len(site.requests) > 1)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(GUARD_S) == 130
        end(process)

    def test_handlers_are_put_back(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), job.interruptible():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == before


class TestClosedPipe:
    """`| head`."""

    def test_it_ends_the_run_quietly(self, site: Server) -> None:
        process = start("fetch", "--delay", "0.01", *(site.url(f"/page/{number}") for number in range(2000)))
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["status"] == 200
        process.stdout.close()
        process.stdout = None
        ran = end(process)
        assert ran.code == 1
        assert len(site.requests) < 1500

    def test_nor_does_the_demo_mind(self) -> None:
        process = start("demo", "--delay", "0.01")
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        assert end(process).code == 0


class TestImports:
    """What the command costs those who do not use it."""

    def test_the_package_does_not_import_it(self) -> None:
        code = "import sys, kreuz_sync; print([name for name in ('argparse', 'kreuz_sync.cli') if name in sys.modules])"
        ran = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        )
        assert ran.stdout.split() == [b"[]"]

    def test_the_other_commands_load_no_cache(self) -> None:
        code = (
            "import sys, kreuz_sync.cli; print([name for name in sys.modules if name.startswith('kreuz_sync.cache')])"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        )
        assert ran.stdout.split() == [b"[]"]
