"""Rules as data: files and their mistakes, sets made of other sets, and sharing them."""

import copy
import json
import pickle
import subprocess
import sys
import threading

import pytest
from requests.structures import CaseInsensitiveDict

from kreuz_sync.waf import DEFAULT_WAF, Waf, WafMatch
from kreuz_sync.waf.rules import MAX_PATTERN, MAX_RULES, MAX_SIGNALS

RULE = {
    "id": "wall",
    "vendor": "example",
    "proof": "definitive",
    "kind": "block",
    "signals": [{"body": "You Shall Not Pass"}],
}
PAGE = b"<html>you shall NOT pass"
FIELDS = CaseInsensitiveDict({"Content-Type": "text/html"})


def changed(**parts):
    return {**RULE, **parts}


@pytest.fixture
def file(tmp_path):
    """A file of one rule."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"about": ["Ours."], "rules": [RULE]}))
    return path


class TestFiles:
    def test_a_file_holds_all_the_rules(self, file):
        waf = Waf.from_file(file)
        assert waf.look(403, FIELDS, PAGE) == WafMatch("example", "block", ("wall",), "high")
        assert waf.look(403, CaseInsensitiveDict({"cf-mitigated": "challenge"}), None) is None

    def test_a_list_alone_will_do(self, file):
        file.write_text(json.dumps([RULE]))
        assert Waf.from_file(str(file)) == Waf([RULE])

    def test_a_byte_order_mark_does_no_harm(self, file):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
        assert Waf.from_file(file) == Waf([RULE])

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "not readable as JSON"),
            ('[{"id": "a",}]', "not readable as JSON.*line 1 column 13"),
            ("[" * 100_000, "not readable as JSON"),
            ("{}", "is wanted"),
            ("7", "is wanted"),
            ('{"rules": [], "version": 2}', "version is not known.*about, rules"),
            ('[{"id": "a", "id": "b"}]', "id is there twice"),
            (json.dumps([RULE, RULE]), "rule 'wall' is there twice"),
            (json.dumps([changed(proof="sure")]), "rule 'wall': proof='sure': one of 'definitive'"),
            (json.dumps([RULE, {"vendor": "x"}]), "rule 2: id, proof, signals missing"),
        ],
        ids=range(10),
    )
    def test_a_mistake_is_named_with_the_file(self, file, text, says):
        file.write_text(text)
        with pytest.raises(ValueError, match=rf"(?s)mine\.json.*{says}"):
            Waf.from_file(file)

    def test_bytes_that_are_no_text_are_named_too(self, file):
        file.write_bytes(b"\xff\xfe[]")
        with pytest.raises(ValueError, match=r"mine\.json: not readable"):
            Waf.from_file(file)

    def test_no_file_is_an_os_error(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="gone"):
            Waf.from_file(tmp_path / "gone.json")


class TestReload:
    def test_takes_up_what_the_file_says_now(self, file):
        waf = Waf.from_file(file)
        file.write_text(json.dumps([changed(vendor="other")]))
        waf.reload()
        assert waf.look(403, FIELDS, PAGE).vendor == "other"

    @pytest.mark.parametrize("text", ["", "[7]", json.dumps([changed(id="new"), changed(id="bad", kind="wall")])])
    def test_a_bad_file_changes_nothing(self, file, text):
        waf = Waf.from_file(file)
        file.write_text(text)
        with pytest.raises((ValueError, TypeError)):
            waf.reload()
        assert waf == Waf([RULE])

    def test_other_rules_have_no_file(self):
        with pytest.raises(ValueError, match="not from a file"):
            Waf([RULE]).reload()


class TestMistakes:
    """In one rule; the error names it and what would be right."""

    @pytest.mark.parametrize(
        ("rule", "says"),
        [
            (changed(kind="wall"), "kind='wall'.*'challenge'"),
            (changed(kind=None), "kind=None"),
            ({key: value for key, value in RULE.items() if key != "kind"}, "kind=None: one of"),
            (changed(vendor=""), "vendor=''.*not empty"),
            (changed(opens="ajar"), "opens='ajar': one of 'anywhere'"),
            (changed(body_under=0), "body_under=0.*1 or more"),
            (changed(status=[]), "status=.*list of codes"),
            (changed(status=403), "status=403: a list of codes"),
            (changed(status=[99]), "status=99.*100 to 599"),
            (changed(weight=1), "weight is not known; known are"),
            (changed(signals=[]), "signals=.*1 to 16"),
            (changed(signals={"body": "x"}), "a list of 1 to 16"),
            (changed(signals=[{"body": "x"}] * (MAX_SIGNALS + 1)), "1 to 16"),
            (changed(signals=[{"body": "x"}, {"bodi": "y"}]), "signal 2: .*one of header, cookie"),
            (changed(signals=[{"body": "x", "title": "y"}]), "signal 1: .*one of header"),
            (changed(signals=[{"body": "x", "value": "y"}]), "value is not known"),
            (changed(signals=[{"body": ""}]), "body=''.*not empty"),
            (changed(signals=[{"body": "x" * (MAX_PATTERN + 1)}]), "4097 bytes, and at most 4096"),
            (changed(signals=["body"]), "signal 1: 'body'"),
        ],
        ids=range(19),
    )
    def test_is_a_value_error(self, rule, says):
        with pytest.raises(ValueError, match=rf"rules: rule 'wall': .*{says}"):
            Waf([rule])

    @pytest.mark.parametrize(
        ("rule", "says"),
        [
            (changed(vendor=7), "vendor=7: a string"),
            (changed(status=["403"]), "status='403': a whole number"),
            (changed(status=[True]), "status=True: a whole number"),
            (changed(body_under="1000"), "body_under='1000'"),
            (changed(signals=[{"header": 5}]), "header=5: a string"),
        ],
        ids=range(5),
    )
    def test_another_kind_of_thing_is_a_type_error(self, rule, says):
        with pytest.raises(TypeError, match=f"rules: rule 'wall': .*{says}"):
            Waf([rule])

    @pytest.mark.parametrize("rules", [7, "rules", RULE, b"x"])
    def test_rules_are_a_list(self, rules):
        with pytest.raises(TypeError, match="a list of rules is wanted"):
            Waf(rules)

    def test_a_rule_is_a_mapping(self):
        with pytest.raises(TypeError, match="rule 1: an object is wanted, not int"):
            Waf([7])

    def test_a_thousand_rules_are_the_most(self):
        many = [changed(id=f"wall-{number}") for number in range(MAX_RULES + 1)]
        assert len(Waf(many[:-1]).rules) == MAX_RULES
        with pytest.raises(ValueError, match="1001 rules, and at most 1000"):
            Waf(many)

    def test_the_longest_pattern_is_taken(self):
        assert Waf([changed(signals=[{"body": "é" * (MAX_PATTERN // 2)}])])


class TestSets:
    def test_adding_leaves_the_set_itself_alone(self):
        more = DEFAULT_WAF.adding([RULE])
        assert more.look(403, FIELDS, PAGE).vendor == "example"
        assert DEFAULT_WAF.look(403, FIELDS, PAGE) is None
        assert len(more.rules) == len(DEFAULT_WAF.rules) + 1

    def test_an_id_is_taken_once(self):
        with pytest.raises(ValueError, match="'cloudflare-mitigated' is there twice"):
            DEFAULT_WAF.adding([changed(id="cloudflare-mitigated")])

    def test_rules_of_a_file_can_be_added(self, file):
        assert DEFAULT_WAF.adding(Waf.from_file(file).rules) == DEFAULT_WAF.adding([RULE])

    def test_without_takes_rules_out_by_id(self):
        fields = CaseInsensitiveDict({"cf-mitigated": "challenge"})
        assert DEFAULT_WAF.without("cloudflare-mitigated").look(403, fields, None) is None

    def test_without_an_unknown_id_is_an_error(self):
        with pytest.raises(ValueError, match="no rule has the id 'cloudflare'"):
            DEFAULT_WAF.without("cloudflare-mitigated", "cloudflare")

    def test_no_rules_find_nothing(self):
        assert Waf([]).look(403, CaseInsensitiveDict({"cf-mitigated": "challenge"}), PAGE) is None


class TestIdentity:
    def test_sets_of_equal_rules_are_equal(self):
        assert Waf() == DEFAULT_WAF and hash(Waf()) == hash(DEFAULT_WAF)
        assert DEFAULT_WAF.adding([RULE]).without("wall") == DEFAULT_WAF
        assert Waf([RULE]) != DEFAULT_WAF

    def test_it_is_fixed(self):
        with pytest.raises(AttributeError):
            DEFAULT_WAF.rules = ()

    def test_its_repr_is_short(self, file):
        assert repr(DEFAULT_WAF) == "Waf()"
        assert repr(Waf([RULE])) == "Waf(<1 rules>)"
        assert repr(Waf.from_file(file)) == f"Waf.from_file({str(file)!r})"

    @pytest.mark.parametrize("copied", [lambda waf: pickle.loads(pickle.dumps(waf)), copy.deepcopy, copy.copy])
    def test_copies_find_the_same(self, file, copied):
        for waf in (DEFAULT_WAF, Waf([RULE]), Waf.from_file(file)):
            twin = copied(waf)
            assert twin == waf and repr(twin) == repr(waf)
            assert twin.look(403, FIELDS, PAGE) == waf.look(403, FIELDS, PAGE)

    def test_a_copy_needs_the_file_for_a_reload_alone(self, file):
        pickled = pickle.dumps(Waf.from_file(file))
        file.unlink()
        twin = pickle.loads(pickled)
        assert twin.look(403, FIELDS, PAGE).vendor == "example"
        with pytest.raises(FileNotFoundError):
            twin.reload()

    def test_the_packages_rules_stay_out_of_a_pickle(self):
        assert DEFAULT_WAF.rules and len(pickle.dumps(DEFAULT_WAF)) < 200

    def test_a_match_pickles(self):
        match = Waf([RULE]).look(403, FIELDS, PAGE)
        assert pickle.loads(pickle.dumps(match)) == match


class TestFirstLook:
    def test_the_import_reads_no_rules(self):
        code = (
            "import sys, kreuz_sync.waf\n"
            "assert 'kreuz_sync.waf.rules' not in sys.modules and 'kreuz_sync.waf.plan' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_threads_that_look_first_together_all_find_it(self):
        waf, start, found = Waf(), threading.Barrier(16), []
        fields = CaseInsensitiveDict({"cf-mitigated": "challenge", "Content-Type": "text/html"})

        def look():
            start.wait(10)
            found.append(waf.look(403, fields, PAGE))

        threads = [threading.Thread(target=look) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert found == [WafMatch("cloudflare", "challenge", ("cloudflare-mitigated",), "high")] * 16

    def test_a_look_during_reloads_sees_one_whole_set(self, file):
        """Two rules of one vendor that count only together: never one of the old, one of the new."""
        waf = Waf.from_file(file)
        texts = [
            json.dumps([changed(vendor=vendor, id=f"{vendor}-{n}", proof="strong") for n in (1, 2)]) for vendor in "ab"
        ]
        file.write_text(texts[0])
        waf.reload()
        over, seen = threading.Event(), set()

        def looking():
            while not over.is_set():
                seen.add(waf.look(200, FIELDS, PAGE))

        thread = threading.Thread(target=looking)
        thread.start()
        for number in range(100):
            file.write_text(texts[number % 2])
            waf.reload()
        over.set()
        thread.join(10)
        assert seen <= {WafMatch(v, "block", (f"{v}-1", f"{v}-2"), "medium") for v in "ab"}
