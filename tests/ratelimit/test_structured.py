"""Structured field values, RFC 9651: what is one, what it says, and how it is written."""

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kreuz_sync.ratelimit.structured import (
    MOST,
    Date,
    DisplayString,
    Item,
    Malformed,
    Token,
    is_string,
    parse_dictionary,
    parse_list,
    serialise_dictionary,
    serialise_list,
)

from .effort import work

PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)
KEYS = st.from_regex(r"[a-z*][a-z0-9_\-.*]{0,8}", fullmatch=True)
TOKENS = st.from_regex(r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]{0,8}", fullmatch=True).map(Token)
INTEGERS = st.integers(-MOST, MOST)
DECIMALS = st.integers(-MOST, MOST).map(lambda thousandths: thousandths / 1000)
VALUES = st.one_of(
    st.booleans(), INTEGERS, DECIMALS, PRINTABLE, TOKENS, st.binary(max_size=20), INTEGERS.map(Date),
    st.text(max_size=10).map(DisplayString),
)  # fmt: skip
ITEMS = st.builds(Item, VALUES, st.dictionaries(KEYS, VALUES, max_size=4))
# Text that is nearly a structured field, so that more than the first character is looked at.
ALPHABET = st.text(st.sampled_from('ab1290.-;=,:?@%"\\ \t*()c3AZ/_~\x7fé'), max_size=40)


def typed(item):
    """An item with the kinds of its values, since True equals 1 and a Token its String."""
    return [(type(value), value) for value in (item.value, *item.parameters.values())], list(item.parameters)


class TestBareItems:
    """Section 4.2.3.1."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1", 1),
            ("-0", 0),
            ("0012", 12),
            ("999999999999999", MOST),
            ("-999999999999999", -MOST),
            ("1.5", 1.5),
            ("-123456789012.125", -123456789012.125),
            ('""', ""),
            ('"a, b;c"', "a, b;c"),
            (r'"say \"hi\" \\o/"', r'say "hi" \o/'),
            ("a", Token("a")),
            ("*a/b:c", Token("*a/b:c")),
            ("::", b""),
            (":YWJj:", b"abc"),
            (":YWI=:", b"ab"),
            (":YWI:", b"ab"),
            ("?1", True),
            ("?0", False),
            ("@1659578233", Date(1659578233)),
            ("@-1", Date(-1)),
            ('%"f%c3%bcr"', DisplayString("für")),
        ],
    )
    def test_a_value_of_each_kind(self, text, value):
        (item,) = parse_list(text)
        assert typed(item) == typed(Item(value))

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "1000000000000000",
                "1.",
                ".5",
                "1.2345",
                "1.2.3",
                "1234567890123.0",
                "-",
                "--1",
                "+1",
                "1_0",
                "1e3",
                "٣",
            ),
            *('"', '"a', '"a\\', r'"\a"', '"\x7f"', '"é"', '"\n"', "'a'"),
            *(":", ":YQ", ":Y:", ":=:", ":YQ=====:", ":Y Q=:", ":YQ==YQ==:", ":é:"),
            *("?", "?2", "?true", "@", "@1.5", "@a", "%a", '%"', '%"%"', '%"%F0"', '%"%ff"', '%"é"'),
            *("(a b)", "()", "&", "\x00", "é", "\u2028"),
        ],
    )
    def test_everything_else_is_malformed(self, text):
        with pytest.raises(Malformed):
            parse_list(text)


class TestLists:
    """Section 4.2.1."""

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("", []),
            ("   ", []),
            ("1,2", [1, 2]),
            ("  1 \t,\t 2  ", [1, 2]),
            ('"a,b", "c"', ["a,b", "c"]),
            ("1\t", [1]),
            ("a,a", ["a", "a"]),
        ],
    )
    def test_members_stand_between_commas(self, text, values):
        assert [item.value for item in parse_list(text)] == values

    @pytest.mark.parametrize("text", ["1,", ",1", "1,,2", "1 2", "\t1", "1;", "1,\t", '"a""b"', "1=2"])
    def test_a_comma_too_many_or_too_few_spoils_the_whole(self, text):
        with pytest.raises(Malformed):
            parse_list(text)


class TestParameters:
    """Section 4.2.3.2."""

    @pytest.mark.parametrize(
        ("text", "parameters"),
        [
            ("a;b", {"b": True}),
            ("a;b=1;c=?0", {"b": 1, "c": False}),
            ("a; b=1;  c=2", {"b": 1, "c": 2}),
            ('a;b="x;y=z"', {"b": "x;y=z"}),
            ("a;*=1;x_y-z.9=2", {"*": 1, "x_y-z.9": 2}),
            ("a;b=1;c=2;b=3", {"b": 3, "c": 2}),
        ],
    )
    def test_the_last_of_a_name_counts(self, text, parameters):
        (item,) = parse_list(text)
        assert list(item.parameters.items()) == list(parameters.items())

    @pytest.mark.parametrize("text", ["a;", "a;B=1", "a;1=1", "a;b=", "a;b =1", "a;b= 1", "a ;b", "a;;b", "a;\tb"])
    def test_a_malformed_one_spoils_the_whole(self, text):
        with pytest.raises(Malformed):
            parse_list(text)


class TestDictionaries:
    """Section 4.2.2."""

    @pytest.mark.parametrize(
        ("text", "members"),
        [
            ("", {}),
            ("limit=100, remaining=50,reset=30", {"limit": 100, "remaining": 50, "reset": 30}),
            ("a, b;x=1, c=?0", {"a": True, "b": True, "c": False}),
            ("a=1, b=2, a=3", {"a": 3, "b": 2}),
            ("a=1;a=2", {"a": 1}),
        ],
    )
    def test_members_have_keys(self, text, members):
        assert {key: item.value for key, item in parse_dictionary(text).items()} == members

    @pytest.mark.parametrize("text", ["A=1", "a=", "a= 1", "a =1", "=1", "a=1,", "a=1 b=2", "1", '"a"=1', "a=(1 2)"])
    def test_everything_else_is_malformed(self, text):
        with pytest.raises(Malformed):
            parse_dictionary(text)

    def test_a_key_alone_may_have_parameters(self):
        assert parse_dictionary("a;x=1")["a"] == Item(True, {"x": 1})


class TestSerialising:
    """Section 4.1."""

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0, "0"),
            (-7, "-7"),
            (1.0, "1.0"),
            (0.25, "0.25"),
            (-0.5, "-0.5"),
            (1 / 3, "0.333"),
            (0.0001, "0.0"),
            (999999999999.999, "999999999999.999"),
            ('a"b\\c', r'"a\"b\\c"'),
            (Token("a/b"), "a/b"),
            (b"abc", ":YWJj:"),
            (b"", "::"),
            (True, "?1"),
            (False, "?0"),
            (Date(1), "@1"),
            (DisplayString('für "%'), '%"f%c3%bcr %22%25"'),
        ],
    )
    def test_a_value_of_each_kind(self, value, text):
        assert serialise_list([Item(value)]) == text

    @pytest.mark.parametrize(
        "value",
        [MOST + 1, -MOST - 1, 1e12, float("nan"), float("inf"), "é", "\n", "\x7f", "\ud800", Token(""), Token("1a"),
         Token("a b"), DisplayString("\ud800")],
    )  # fmt: skip
    def test_what_cannot_be_written_is_refused(self, value):
        with pytest.raises(Malformed):
            serialise_list([Item(value)])

    @pytest.mark.parametrize("key", ["", "A", "1", "a b", "é"])
    def test_what_is_no_key_is_refused(self, key):
        with pytest.raises(Malformed):
            serialise_dictionary({key: Item(1)})
        with pytest.raises(Malformed):
            serialise_list([Item(1, {key: 1})])

    def test_no_space_before_a_parameter_and_one_before_a_member(self):
        assert serialise_list([Item("a", {"q": 1, "w": 2, "x": True}), Item("b")]) == '"a";q=1;w=2;x, "b"'

    @given(st.text(max_size=10))
    def test_is_string_says_what_can_be_written(self, text):
        try:
            serialise_list([Item(text)])
        except Malformed:
            assert not is_string(text)
        else:
            assert is_string(text)


class TestRoundTrip:
    @given(st.lists(ITEMS, max_size=5))
    @pytest.mark.slow
    def test_a_list_says_what_was_written(self, items):
        assert [typed(item) for item in parse_list(serialise_list(items))] == [typed(item) for item in items]

    @given(st.dictionaries(KEYS, ITEMS, max_size=5))
    @pytest.mark.slow
    def test_a_dictionary_says_what_was_written(self, members):
        read = parse_dictionary(serialise_dictionary(members))
        assert {key: typed(item) for key, item in read.items()} == {key: typed(item) for key, item in members.items()}


class TestAnyText:
    @given(st.one_of(st.text(max_size=60), ALPHABET))
    @example("1" * 5000)
    def test_nothing_but_malformed_is_raised(self, text):
        for parse in (parse_list, parse_dictionary):
            with suppress(Malformed):
                parse(text)

    @pytest.mark.parametrize(
        ("start", "middle", "end"),
        [
            ("", "a,", ""),
            ("", "a, ", "a"),
            ("", " ", "a"),
            ("a", " \t", "b"),
            ("a", ";b", ""),
            ("a", ";b=1", ";"),
            ("a", ";   b", "="),
            ("", "1", ""),
            ("", "1.", ""),
            ('"', "a", ""),
            ('"', '\\"', ""),
            ('"', "\\\\", "\\"),
            (":", "A", ""),
            (":", "=", ":"),
            ('%"', "%c3", '"'),
            ('%"', "a%20", ""),
            ("", '"a";q=1;w=2, ', ""),
            ("", "a=1,", "b"),
        ],
    )
    @pytest.mark.slow
    def test_twice_the_text_is_twice_the_work(self, start, middle, end):
        """Counted are the characters that patterns were started at, and how far each went."""
        few, many = (work(start + middle * (size // len(middle)) + end) for size in (2_000, 20_000))
        assert many <= 11 * few + 1000


class TestOracle:
    """http_sf, by an author of the standard, reads the same out of every text."""

    @given(st.one_of(ALPHABET, st.lists(ITEMS, max_size=3).map(serialise_list)))
    @pytest.mark.slow
    def test_a_list(self, text):
        oracle = pytest.importorskip("http_sf")
        assert ours(parse_list, text) == theirs(oracle, text, "list")

    @given(st.one_of(ALPHABET, st.dictionaries(KEYS, ITEMS, max_size=3).map(serialise_dictionary)))
    @pytest.mark.slow
    def test_a_dictionary(self, text):
        oracle = pytest.importorskip("http_sf")
        assert ours(parse_dictionary, text) == theirs(oracle, text, "dictionary")


def ours(parse, text):
    try:
        read = parse(text)
    except Malformed:
        return None
    if isinstance(read, dict):
        return {key: (shown(item.value), shown_all(item.parameters)) for key, item in read.items()}
    return [(shown(item.value), shown_all(item.parameters)) for item in read]


def theirs(oracle, text, kind):
    """What the oracle reads; None if that is malformed or has what we do not read: an inner list."""
    try:
        read = oracle.parse(text.encode("utf-8"), tltype=kind)
    except oracle.StructuredFieldError as error:
        assume("out of range" not in str(error))  # a Date beyond what Python's calendar has
        return None
    members = list(read.values() if isinstance(read, dict) else read)
    if any(isinstance(member[0], list) for member in members):
        return None
    shown_members = [(shown(value), shown_all(parameters)) for value, parameters in members]
    return dict(zip(read, shown_members, strict=True)) if isinstance(read, dict) else shown_members


def shown_all(parameters):
    return {key: shown(value) for key, value in parameters.items()}


def shown(value):
    """A value as its kind and something comparable."""
    kind = type(value).__name__
    if kind == "datetime":
        return "date", value.timestamp()
    if isinstance(value, Decimal):
        return "float", float(value)
    plain = {"Date": int, "Token": str, "DisplayString": str}.get(kind)
    return kind.lower(), value if plain is None else plain(value)
