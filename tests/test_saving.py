"""Names for files, files that are whole or not there, and the two places results go to."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kreuz_sync.outcome import Hop, Outcome
from kreuz_sync.saving import INDEX, Folder, JsonLines, extension_of, file_name, write_whole


class TestExtension:
    """The ending of a file, from its media type."""

    @pytest.mark.parametrize(
        ("content_type", "extension"),
        [
            ("text/html", ".html"),
            ("TEXT/HTML ; charset=utf-8", ".html"),
            ("application/problem+json", ".json"),
            ("application/vnd.example+xml; v=1", ".xml"),
            ("image/jpeg", ".jpg"),
            ("application/x-unheard-of", ".bin"),
            ("text/../../x", ".bin"),
            ("json", ".json"),
            ("", ".bin"),
            (None, ".bin"),
        ],
    )
    def test_it_is_one_of_a_few(self, content_type: str | None, extension: str) -> None:
        assert extension_of(content_type) == extension


HOSTILE = [
    "http://a.test/../../etc/passwd",
    "http://a.test/..%2f..%2fetc",
    "http://../../x",
    "http://a.test/" + "x" * 5000,
    "http://a.test/a\x00b\nc",
    "http://a.test/C:\\windows\\system32",
    "http://a.test/con",
    "http://[::1",
    "http://[::1]:8080/",
    "http://a.test:99999/",
    "-rf",
    ".",
    "..",
    "/",
    "",
    "\udcff\ud800",
    "http://ü.test/ü",
]


class TestFileName:
    """A name for the body of a URL."""

    @pytest.mark.parametrize("url", HOSTILE)
    def test_it_is_safe_whatever_the_url(self, url: str) -> None:
        name = file_name(url, "text/html")
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*-[0-9a-f]{20}\.html", name)
        assert len(name) <= 110
        assert ".." not in name

    @pytest.mark.parametrize(
        ("url", "start"),
        [
            ("http://a.test/", "a.test-"),
            ("http://a.test:8080/x/y.json", "a.test-8080-x-y.json-"),
            ("http://A.test/News/Today.html", "a.test-News-Today-"),
            ("nonsense", "nonsense-"),
            ("", "page-"),
        ],
    )
    def test_it_starts_with_what_a_reader_knows(self, url: str, start: str) -> None:
        assert file_name(url, "text/html").startswith(start)

    def test_no_two_urls_share_a_name(self) -> None:
        """Not even those that look the same once they are made safe, or on a disk without case."""
        urls = [
            *("http://a.test/x?p=1", "http://a.test/x?p=2", "http://a.test/x", "http://a.test/X", "https://a.test/x"),
            *("http://a.test/x/", "http://a.test/x-", "http://a.test/x_", "http://a.test:80/x", "http://me@a.test/x"),
            *("http://a.test/" + "x" * 5000, "http://a.test/" + "x" * 5001),
        ]
        assert len({file_name(url, None).lower() for url in urls}) == len(urls)

    def test_it_is_the_same_in_every_run(self) -> None:
        assert file_name("http://a.test/x", None) == "a.test-x-b48b4715f4efc77b25fd.bin"

    def test_a_fragment_makes_no_other_page(self) -> None:
        assert file_name("http://a.test/x#one", None) == file_name("http://a.test/x", None)

    @pytest.mark.parametrize("url", ["http://me:{}@a.test/", "http://me:{}@x@a.test/", "//me:{}@a.test/"])
    def test_a_password_has_no_part_in_it(self, url: str) -> None:
        """A short one could be guessed from a digest."""
        assert file_name(url.format("one"), None) == file_name(url.format("two"), None)
        assert "one" not in file_name(url.format("one"), None)


class TestWriteWhole:
    """A file that is there with all its bytes, or not there."""

    def test_it_replaces_what_was_there(self, tmp_path: Path) -> None:
        write_whole(tmp_path / "page", b"old")
        write_whole(tmp_path / "page", b"new")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"page": b"new"}

    def test_what_fails_leaves_nothing_behind(self, tmp_path: Path) -> None:
        """Here the name is that of a folder, so that the last step fails."""
        (tmp_path / "page" / "within").mkdir(parents=True)
        with pytest.raises(OSError):
            write_whole(tmp_path / "page", b"new")
        assert [path.name for path in tmp_path.iterdir()] == ["page"]

    def test_its_permissions_are_the_users_usual_ones(self, tmp_path: Path) -> None:
        """As those of a file that is simply opened."""
        (tmp_path / "usual").touch()
        write_whole(tmp_path / "page", b"new")
        assert (tmp_path / "page").stat().st_mode == (tmp_path / "usual").stat().st_mode


def outcome(number: int = 1, url: str = "http://a.test/", **parts: Any) -> Outcome:
    return Outcome(number, url, 0.5, (Hop("a.test", 1, 0.0, 0.5),), **parts)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


class TestFolder:
    """A file for every body, and the index."""

    def test_the_index_says_which_url_is_which_file(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path / "deep" / "down")
        folder.write(outcome(1, "http://a.test/1", content=b"one", content_type="text/plain", status=200))
        folder.write(outcome(2, "http://a.test/2", content=b"two", status=200))
        folder.close()
        index = lines_of(tmp_path / "deep" / "down" / INDEX)
        assert [line["url"] for line in index] == ["http://a.test/1", "http://a.test/2"]
        assert [(tmp_path / "deep" / "down" / line["file"]).read_bytes() for line in index] == [b"one", b"two"]

    def test_the_body_of_an_error_is_not_kept(self, tmp_path: Path) -> None:
        """A challenge page that is taken for the page is worse than none."""
        folder = Folder(tmp_path)
        folder.write(outcome(content=b"go away", tag="waf_blocked", status=403))
        folder.close()
        (line,) = lines_of(tmp_path / INDEX)
        assert (line["file"], line["tag"], line["status"]) == (None, "waf_blocked", 403)
        assert os.listdir(tmp_path) == [INDEX]

    def test_a_second_run_adds_to_the_index(self, tmp_path: Path) -> None:
        for number in (1, 2):
            folder = Folder(tmp_path)
            folder.write(outcome(number))
            folder.close()
        assert [line["number"] for line in lines_of(tmp_path / INDEX)] == [1, 2]

    def test_half_a_line_of_a_killed_run_spoils_no_other(self, tmp_path: Path) -> None:
        (tmp_path / INDEX).write_text('{"number": 1, "ur')
        folder = Folder(tmp_path)
        folder.write(outcome(2))
        folder.close()
        assert json.loads((tmp_path / INDEX).read_text().splitlines()[1])["number"] == 2

    def test_a_folder_that_cannot_be_made_is_an_os_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(OSError):
            Folder(tmp_path / "file")


class PartialStream(io.BytesIO):
    """Takes three bytes at a time, as a pipe that is nearly full may."""

    def write(self, content: Any) -> int:
        return super().write(content[:3])


class TestJsonLines:
    """One line a URL."""

    def test_a_line_is_plain_ascii(self) -> None:
        """It is the same bytes on every terminal and in every locale."""
        stream = io.BytesIO()
        JsonLines(stream).write(outcome(url="http://ü.test/\udcff"))
        assert json.loads(stream.getvalue().decode("ascii"))["url"] == "http://ü.test/\udcff"

    def test_bodies_come_only_when_asked_for(self) -> None:
        without, within = io.BytesIO(), io.BytesIO()
        JsonLines(without).write(outcome(content=b"page"))
        JsonLines(within, with_body=True).write(outcome(content=b"page"))
        assert "body" not in json.loads(without.getvalue())
        assert json.loads(within.getvalue())["body"] == "page"

    def test_a_line_is_complete_however_little_a_write_takes(self) -> None:
        stream = PartialStream()
        JsonLines(stream).write(outcome())
        assert json.loads(stream.getvalue())["url"] == "http://a.test/"
