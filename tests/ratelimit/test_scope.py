"""One text for each pair of policy and client key, and no other pair has it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kreuz_sync.ratelimit.scope import LONGEST, escape, scoped_key

KEYS = st.text() | st.binary() | st.text(alphabet=":%2535Aab", max_size=6)
NAMES = st.text(min_size=1) | st.text(alphabet=":%23Aab", min_size=1, max_size=6)


class TestEscape:
    """`%` becomes `%25` first, then `:` becomes `%3A`, and nothing else changes."""

    @pytest.mark.parametrize(
        ("part", "escaped"),
        [("", ""), ("a", "a"), (":", "%3A"), ("%", "%25"), ("%3A", "%253A"), ("a:b%c", "a%3Ab%25c"), ("/ ü?", "/ ü?")],
    )
    def test_of_these(self, part, escaped):
        assert escape(part) == escaped

    @given(st.text())
    def test_it_can_be_undone(self, part):
        assert escape(part).replace("%3A", ":").replace("%25", "%") == part


class TestScopedKey:
    """Policy and key, joined by the only colon there is."""

    def test_it_joins_the_escaped_parts(self):
        assert scoped_key("default-policy", "example.com") == "default-policy:example.com"

    def test_a_colon_in_a_part_is_no_border(self):
        assert scoped_key("a:b", "c") != scoped_key("a", "b:c")

    def test_an_empty_key_is_a_key(self):
        assert scoped_key("a", "") == "a:"

    @given(NAMES, KEYS, NAMES, KEYS)
    @example("a", "::b", "a:", ":b")
    @example("a", b"b", "a", "b")
    def test_two_pairs_never_share_one(self, name, key, other_name, other_key):
        same = (name, key) == (other_name, other_key) and type(key) is type(other_key)
        assert (scoped_key(name, key) == scoped_key(other_name, other_key)) is same


class TestDigest:
    """What is long, not ASCII or binary is counted under its digest."""

    @given(NAMES, KEYS)
    def test_every_scoped_key_is_short_printable_ascii(self, name, key):
        scoped = scoped_key(name, key)
        assert scoped.isascii()
        assert scoped.isprintable()
        assert len(scoped) <= 4 * LONGEST + 1

    @pytest.mark.parametrize("key", ["k" * 10_000, "schlüssel", "line\nend", "\udcff", b"\x00\xff", b"plain"])
    def test_it_keeps_the_policy_readable(self, key):
        scoped = scoped_key("search", key)
        assert scoped.startswith("search::")
        assert len(scoped) == len("search::") + 64

    def test_it_is_the_same_in_every_process(self):
        """Or processes that share a store would count apart."""
        assert scoped_key("search", "é") == "search::c47b7b3aa5a565ae444af91d8d1bede955659d0c2566f1a798354d95ce9026b2"

    @pytest.mark.parametrize("name", ["n" * 10_000, "für alle", "a\0b"])
    def test_a_policy_of_that_kind_goes_into_it(self, name):
        assert scoped_key(name, "k").startswith("::")
        assert len(scoped_key(name, "k")) == 66

    def test_the_longest_key_that_stays_has_room_for_any_host(self):
        """A host name has 253 characters at most (RFC 1035, section 2.3.4)."""
        assert scoped_key("p", "h" * 253) == "p:" + "h" * 253

    def test_what_a_digest_looks_like_is_not_taken_for_one(self):
        digested = scoped_key("p", "é")
        assert scoped_key("p", digested.removeprefix("p:")) != digested
