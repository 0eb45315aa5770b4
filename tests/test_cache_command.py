"""`kreuz-sync cache`: what a folder of stored answers holds, and what is dropped of it."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kreuz_sync import Cache, DiskStore
from kreuz_sync.cache.newcomer import Newcomer, admit_all
from kreuz_sync.cli import main
from kreuz_sync.clock import SYSTEM_CLOCK

from .cache_sessions import caching
from .fakes import FakeClock
from .loopback import Server
from .loopback import answer as reply

HOUR = 3600.0


def run(*given: Any) -> int:
    """The command with these arguments, as a terminal would call it."""
    return main(["cache", *map(str, given)])


def answer(url: str, body: bytes = b"hello", *, age: float = 0.0, status: int = 200, **fields: str) -> Newcomer:
    told = {"Content-Type": "text/plain", **{name.replace("_", "-"): value for name, value in fields.items()}}
    return Newcomer(
        *("GET", url, {}, status, "OK", 11, tuple(told.items()), body),
        response_time=SYSTEM_CLOCK.wall() - age,
        elapsed=0.0,
    )


def fill(folder: Path, *answers: Newcomer, **settings: Any) -> Path:
    store = DiskStore(folder)
    admit_all(Cache(store, **settings), "a test", answers)
    store.close()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with a fresh answer of one host, and one of another that has been stale for an hour."""
    return fill(
        tmp_path / "cache",
        answer("http://a.example/new?token=hush", b"x" * 2000),
        answer("http://b.example/old", age=2 * HOUR),
        ttl=HOUR,
    )


class Folder(NamedTuple):
    """The folder of a session's cache, and the server that it asked."""

    path: Path
    server: Server

    def url(self, path: str) -> str:
        return self.server.url(path)


@pytest.fixture
def asked(tmp_path: Path, server: Server) -> Folder:
    """What several users were answered, and two POSTs."""
    server.route("/*", lambda request: reply(body=f"for {request.fields.get('Authorization')}"))
    server.route("/read", lambda request: reply(body=request.body))
    time = FakeClock(wall=SYSTEM_CLOCK.wall() - 100)
    with caching(Cache(DiskStore(tmp_path / "asked"), post=True, clock=time)) as session:
        for path, who in (("/mine", "one"), ("/mine", "two"), ("/both", None), ("/both", "one")):
            time.advance(1)
            session.get(server.url(path), headers={"Authorization": f"Bearer {who}"} if who else {})
        for body in ("a", "b"):
            time.advance(1)
            session.post(server.url("/read"), data=body)
    return Folder(tmp_path / "asked", server)


def urls(folder: Path, capsys: pytest.CaptureFixture[str], *filters: str) -> list[str]:
    assert run("list", folder, "--json", *filters) == 0
    return [json.loads(line)["url"] for line in capsys.readouterr().out.splitlines()]


class TestList:
    """What `list` prints."""

    def test_people_get_aligned_columns(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("list", folder) == 0
        head, *lines = capsys.readouterr().out.splitlines()
        at = head.index("URL")
        assert head.split() == ["STATUS", "METHOD", "AGE", "FRESH", "SIZE", "TYPE", "FOR", "URL"]
        assert sorted(line[at:] for line in lines) == [
            "http://a.example/new?token=REDACTED",
            "http://b.example/old",
        ]

    def test_programs_get_a_line_of_json_for_each(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("list", folder, "--json") == 0
        old = next(one for one in map(json.loads, capsys.readouterr().out.splitlines()) if "old" in one["url"])
        assert (old["host"], old["status"], old["size"], old["fresh"]) == ("b.example", 200, 5, False)
        assert "key" not in old

    def test_secrets_in_urls_are_not_shown(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run("list", folder)
        run("list", folder, "--json")
        assert "hush" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            (["--url", "*.example/new*"], ["new?token=REDACTED"]),
            (["--host", "b.example"], ["old"]),
            (["--stale"], ["old"]),
            (["--older-than", "1h"], ["old"]),
            (["--younger-than", "1h"], ["new?token=REDACTED"]),
            (["--status", "200", "--stale"], ["old"]),
            (["--status", "404"], []),
            (["--older-than", "1h", "--host", "a.example"], []),
        ],
    )
    def test_a_filter_keeps_what_fits(
        self, folder: Path, capsys: pytest.CaptureFixture[str], filters: list[str], found: list[str]
    ) -> None:
        assert [url.rpartition("/")[2] for url in urls(folder, capsys, *filters)] == found

    def test_it_shows_the_method_and_what_is_somebodys(self, asked: Folder, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("list", asked.path) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
        found = sorted((row[1], row[-2], row[-1].rpartition("/")[2]) for row in rows)
        assert found == [
            ("GET", "anybody", "both"),
            ("GET", "somebody", "both"),
            *[("GET", "somebody", "mine")] * 2,
            *[("POST", "anybody", "read")] * 2,
        ]

    def test_a_pattern_that_fits_no_url_is_wrong_usage(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("list", folder, "--url", "/old") == 2
        assert "it begins with a host" in capsys.readouterr().err

    def test_what_never_ends_has_no_number_in_json(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(tmp_path, answer("http://a.example/"), ttl=0)
        run("list", tmp_path, "--json")
        assert json.loads(capsys.readouterr().out)["ttl"] is None
        run("list", tmp_path)
        assert "for ever" in capsys.readouterr().out

    def test_what_its_origin_keeps_time_of_is_judged_by_that(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        one, two = answer("http://a.example/1", Cache_Control="max-age=60"), answer("http://a.example/2", ETag='"x"')
        fill(tmp_path, one, two, policy="rfc9111")
        assert urls(tmp_path, capsys, "--stale") == ["http://a.example/2"]

    def test_an_empty_cache_gives_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(tmp_path)
        assert run("list", tmp_path) == 0
        assert capsys.readouterr().out == ""

    def test_what_would_steer_a_terminal_is_replaced(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(tmp_path, answer("http://a.example/", Content_Type="text/\x1b[31m"))
        run("list", tmp_path)
        assert "\x1b" not in capsys.readouterr().out


class TestStats:
    """What `stats` prints."""

    def test_answers_are_counted_by_host(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("stats", folder, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["answers"], found["fresh"], found["stale"], found["body_bytes"]) == (2, 1, 1, 2005)
        assert found["hosts"]["b.example"] == {"answers": 1, "stale": 1, "body_bytes": 5}

    def test_people_get_words(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("stats", folder) == 0
        shown = capsys.readouterr().out
        assert "oldest age" in shown
        assert "2.0k" in shown


class TestGet:
    """What `get` writes."""

    def test_the_body_comes_decoded(self, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        import gzip

        coded = gzip.compress(b"hello \xff")
        fill(tmp_path, answer("http://a.example/", coded, Content_Encoding="gzip"))
        assert run("get", tmp_path, "http://a.example/") == 0
        assert capfdbinary.readouterr().out == b"hello \xff"

    def test_a_file_may_take_it(self, folder: Path, tmp_path: Path) -> None:
        assert run("get", folder, "http://b.example/old", "--out", tmp_path / "body") == 0
        assert (tmp_path / "body").read_bytes() == b"hello"

    def test_a_url_without_a_stored_answer_is_a_failure(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("get", folder, "http://b.example/none?token=hush") == 1
        told = capsys.readouterr()
        assert told.err == "kreuz-sync cache: no answer is stored for http://b.example/none?token=REDACTED\n"

    def test_what_one_user_was_answered_is_not_written_without_a_word(
        self, asked: Folder, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("get", asked.path, asked.url("/mine")) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith(f"kreuz-sync cache: no answer is stored for {asked.url('/mine')} that was asked for")
        assert told.err.endswith("without credentials: --with-credentials\n")

    def test_it_is_where_that_is_said(self, asked: Folder, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("get", asked.path, asked.url("/both"), "--with-credentials") == 0
        assert tuple(capfd.readouterr()) == ("for Bearer one", "")
        assert run("get", asked.path, asked.url("/both")) == 0
        assert tuple(capfd.readouterr()) == ("for None", "")

    def test_of_several_the_newest_is_written(self, asked: Folder, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("get", asked.path, asked.url("/mine"), "--with-credentials") == 0
        told = capfd.readouterr()
        assert told.out == "for Bearer two"
        assert told.err == f"kreuz-sync cache: 2 answers are stored for {asked.url('/mine')}: this is the newest\n"

    def test_an_answer_to_post_is_found(self, asked: Folder, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("get", asked.path, asked.url("/read")) == 1
        assert run("get", asked.path, asked.url("/read"), "--method", "POST") == 0
        assert capfd.readouterr().out == "b"

    @pytest.mark.parametrize(("token", "more", "code"), [("hush", [], 0), ("other", [], 1), ("REDACTED", [], 1)])
    def test_a_secret_in_a_url_finds_its_own_answer_alone(
        self, folder: Path, token: str, more: list[str], code: int
    ) -> None:
        assert run("get", folder, f"http://a.example/new?token={token}", "--out", folder / "body", *more) == code
        if token == "REDACTED":  # as a listing shows it
            assert run("get", folder, f"http://a.example/new?token={token}", "--with-credentials") == 0

    def test_what_is_no_url_is_wrong_usage(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("get", folder, "b.example/?token=hush") == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "hush" not in told

    def test_what_only_the_origin_s_word_stores_is_found(self, tmp_path: Path) -> None:
        folder = fill(
            tmp_path / "c", answer("http://a.example/", status=404, Cache_Control="max-age=9"), policy="rfc9111"
        )
        assert run("get", folder, "http://a.example/", "--out", tmp_path / "body") == 0

    def test_an_answer_under_a_key_of_the_user_s_own_is_found_by_what_is_listed(self, tmp_path: Path) -> None:
        folder = fill(tmp_path / "c", answer("http://a.example/1"), key=lambda request: "one")
        assert run("get", folder, "http://a.example/1", "--out", tmp_path / "body") == 0


class TestDelete:
    """What `delete` and `clear` drop."""

    def test_urls_are_dropped(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("delete", folder, "http://a.example/new?token=hush", "http://a.example/none") == 0
        assert capsys.readouterr().err == "1 answer deleted\n"
        assert urls(folder, capsys) == ["http://b.example/old"]

    def test_another_secret_in_a_url_drops_nothing(self, folder: Path) -> None:
        run("delete", folder, "http://a.example/new?token=other")
        assert len(DiskStore(folder)) == 2

    def test_a_url_as_it_is_listed_is_dropped(self, folder: Path) -> None:
        run("delete", folder, "http://a.example/new?token=REDACTED")
        assert len(DiskStore(folder)) == 1

    def test_what_fits_is_dropped(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("delete", folder, "--url", "b.example") == 0
        assert urls(folder, capsys) == ["http://a.example/new?token=REDACTED"]

    @pytest.mark.parametrize("given", [[], ["http://a.example/", "--stale"]])
    def test_either_urls_or_a_filter_must_be_given(self, folder: Path, given: list[str]) -> None:
        assert run("delete", folder, *given) == 2

    def test_an_answer_under_a_key_of_the_user_s_own_is_dropped(self, tmp_path: Path) -> None:
        fill(tmp_path, answer("http://a.example/1"), key=lambda request: "one")
        run("delete", tmp_path, "http://a.example/1")
        assert len(DiskStore(tmp_path)) == 0

    def test_clear_drops_all_if_it_need_not_ask(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("clear", folder, "--yes") == 0
        assert capsys.readouterr().err == "2 answers deleted\n"
        assert urls(folder, capsys) == []

    def test_clear_drops_nothing_if_nobody_can_be_asked(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
        assert run("clear", folder) == 2
        assert len(urls(folder, capsys)) == 2

    @pytest.mark.parametrize(("said", "left"), [("y\n", 0), ("Yes\n", 0), ("\n", 2), ("n\n", 2), ("", 2)])
    def test_clear_asks(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: str, left: int
    ) -> None:
        terminal = io.StringIO(said)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", terminal)
        assert run("clear", folder) == (1 if left else 0)
        assert len(urls(folder, capsys)) == left


class TestTakingAlong:
    """`export` and `import`."""

    def test_what_one_cache_exports_another_imports(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fill(tmp_path / "other")
        assert run("export", folder, tmp_path / "file", "--host", "b.example") == 0
        assert run("import", tmp_path / "other", tmp_path / "file") == 0
        assert capsys.readouterr().err == "1 answer written\n1 answer added\n"
        assert urls(tmp_path / "other", capsys) == ["http://b.example/old"]

    @pytest.mark.parametrize("name", ["new", "new/one", "empty"])
    def test_a_folder_is_made_for_them(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
    ) -> None:
        (tmp_path / "empty").mkdir()
        run("export", folder, tmp_path / "file", "--host", "b.example")
        assert run("import", tmp_path / name, tmp_path / "file") == 0
        capsys.readouterr()
        assert urls(tmp_path / name, capsys) == ["http://b.example/old"]

    @pytest.mark.parametrize("content", [None, b"something else"])
    def test_none_is_made_for_a_file_that_cannot_be_read(self, tmp_path: Path, content: bytes | None) -> None:
        if content is not None:
            (tmp_path / "file").write_bytes(content)
        assert run("import", tmp_path / "new", tmp_path / "file") in (1, 2)
        assert not (tmp_path / "new").exists()

    def test_a_folder_of_something_else_is_left_alone(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run("export", folder, tmp_path / "file")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "mine").touch()
        for other in (tmp_path / "other", tmp_path / "file"):
            assert run("import", other, tmp_path / "file") == 2
        assert "is no folder of a cache" in capsys.readouterr().err
        assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine"]

    def test_what_only_the_origin_s_word_stores_goes_along(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gone = answer("http://a.example/", status=404, Cache_Control="max-age=9")
        fill(tmp_path / "one", gone, policy="rfc9111")
        run("export", tmp_path / "one", tmp_path / "file")
        assert run("import", tmp_path / "two", tmp_path / "file") == 0
        capsys.readouterr()
        assert urls(tmp_path / "two", capsys, "--status", "404") == ["http://a.example/"]

    def test_a_file_of_another_form_is_refused(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").write_bytes(b"something else")
        assert run("import", folder, tmp_path / "file") == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_a_missing_file_is_a_failure(self, folder: Path, tmp_path: Path) -> None:
        assert run("import", folder, tmp_path / "none") in (1, 2)


class TestWhatIsNoCache:
    """A folder that the command must leave alone."""

    def _refused(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = sorted(folder.iterdir()) if folder.is_dir() else None
        for verb in ("list", "stats"):
            assert run(verb, folder) == 2
            assert capsys.readouterr() == ("", f"kreuz-sync cache: {folder} is no folder of a cache\n")
        assert (sorted(folder.iterdir()) if folder.is_dir() else None) == before

    def test_a_missing_folder_is_not_made(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._refused(tmp_path / "none", capsys)

    def test_an_empty_folder_stays_empty(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._refused(tmp_path, capsys)

    def test_a_file_of_the_same_name_is_not_set_aside(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "cache.db").write_text("not a database")
        self._refused(tmp_path, capsys)

    def test_another_database_is_left_alone(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        connection = sqlite3.connect(tmp_path / "cache.db")
        connection.execute("CREATE TABLE mine (x)")
        connection.close()
        self._refused(tmp_path, capsys)


class TestArguments:
    """What argparse refuses."""

    @pytest.mark.parametrize("given", [["list"], ["forget", "x"], ["list", "x", "--older-than", "soon"], []])
    def test_wrong_arguments_end_with_2(self, given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            run(*given)
        assert ended.value.code == 2
