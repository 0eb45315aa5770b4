"""How much work it is to read a structured field, counted instead of timed."""

from contextlib import suppress

import pytest

from kreuz_sync.ratelimit import structured
from kreuz_sync.ratelimit.structured import Malformed, parse_dictionary, parse_list


def work(text):
    """Characters that the patterns of both parsers looked at for `text`, each as often as it was."""
    looked = 0

    class Counting:
        def __init__(self, pattern):
            self.pattern = pattern

        def match(self, text, at):
            nonlocal looked
            found = self.pattern.match(text, at)
            looked += 1 + (len(text) - at if found is None else found.end() - at)
            return found

        def __getattr__(self, name):
            return getattr(self.pattern, name)

    names = [name for name, value in vars(structured).items() if hasattr(value, "fullmatch")]
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(structured, name, Counting(getattr(structured, name)))
        for parse in (parse_list, parse_dictionary):
            with suppress(Malformed):
                parse(text)
    return looked
