"""What the constructors say about wrong arguments."""

import pytest

from kreuz_sync import checks


class TestSeconds:
    @pytest.mark.parametrize("value", ["1", None, True, [1], 1j])
    def test_another_kind_of_thing_is_a_type_error(self, value):
        with pytest.raises(TypeError, match=r"delay=.*seconds"):
            checks.seconds("delay", value)

    @pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), float("-inf")])
    def test_an_impossible_number_is_a_value_error(self, value):
        with pytest.raises(ValueError, match=r"delay=.*0 or more"):
            checks.seconds("delay", value)

    def test_above_excludes_its_bound(self):
        assert checks.seconds("timeout", 1, above=0) == 1.0
        with pytest.raises(ValueError, match="more than 0"):
            checks.seconds("timeout", 0, above=0)


class TestCount:
    def test_bounds(self):
        assert checks.count("n", 5, least=5, most=5) == 5
        with pytest.raises(ValueError, match="n=6.*1 to 5"):
            checks.count("n", 6, least=1, most=5)

    @pytest.mark.parametrize("value", [True, 1.0, "1", None])
    def test_only_whole_numbers(self, value):
        with pytest.raises(TypeError, match="n="):
            checks.count("n", value)


class TestTexts:
    def test_one_string_is_not_a_list_of_letters(self):
        with pytest.raises(TypeError, match="agents='ab'"):
            checks.texts("agents", "ab")

    def test_a_mapping_is_not_a_list_of_its_keys(self):
        with pytest.raises(TypeError, match="agents="):
            checks.texts("agents", {"a/1": 1})

    def test_an_empty_one_is_named_by_its_place(self):
        with pytest.raises(ValueError, match=r"agents\[1\]"):
            checks.texts("agents", ["a", ""])

    def test_a_secret_is_not_quoted(self):
        with pytest.raises(TypeError) as caught:
            checks.text("token", b"s3cret", secret=True)
        assert "s3cret" not in str(caught.value)


def test_statuses_are_100_to_599():
    assert checks.statuses("statuses", [429, 503]) == {429, 503}
    with pytest.raises(ValueError, match="600"):
        checks.statuses("statuses", [600])
    with pytest.raises(TypeError, match="statuses"):
        checks.statuses("statuses", 429)


def test_one_of_a_few_words():
    assert checks.one_of("per", "call", ("call", "host")) == "call"
    with pytest.raises(ValueError, match="'call', 'host'"):
        checks.one_of("per", "day", ("call", "host"))
    with pytest.raises(ValueError, match="jitter=1"):
        checks.one_of("jitter", 1, (True, None))


def test_a_flag_is_a_bool():
    with pytest.raises(TypeError, match="robots=1"):
        checks.flag("robots", 1)
