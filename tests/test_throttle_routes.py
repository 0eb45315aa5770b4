"""Which bucket a request belongs to, learnt from answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreuz_sync.throttle.routes import ENOUGH, MOST_FOLDERS, MOST_ROUTES, Routes, route


def learnt(**buckets_of_paths):
    """Routes that know of these buckets, each with the paths that were counted in it."""
    routes = Routes()
    for bucket, paths in buckets_of_paths.items():
        for path in paths.split():
            routes.learn(way(path), bucket)
    return routes


def way(path, method="GET"):
    return route(method, f"https://api.example.test{path}")


def bucket(routes, path, method="GET"):
    return routes.bucket_of(way(path, method))


class TestRoutes:
    """A route is a method and a path, without what names one of many alike."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("/users/17", "/users/18"),
            ("/users/17/posts", "/users/9999/posts"),
            ("/items/9f86d081-884c-4d65-9a2f-eaa0c55ad015", "/items/2c26b46b-68ff-c68f-f99b-453c1d304134"),
            ("/blobs/9f86d081884c7d65", "/blobs/2c26b46b68ffc68f"),
            ("/items?page=1", "/items?page=2"),
            ("/items#a", "/items"),
            (f"/t/{'a' * 50}", f"/t/{'b' * 60}"),
            ("/1/2/3/4/5/6/7/8/a", "/1/2/3/4/5/6/7/8/b"),
        ],
    )
    def test_these_are_one(self, one, other):
        assert way(one) == way(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("/users", "/posts"),
            ("/users", "/users/"),
            ("/users/17", "/users/me"),
            ("/users/17", "/users/17/posts"),
            ("/", "/users"),
            ("/face", "/decade"),  # words of letters that hashes have too
            ("/ab/c", "/a/bc"),
        ],
    )
    def test_these_are_two(self, one, other):
        assert way(one) != way(other)

    def test_so_are_two_methods(self):
        assert way("/users", "GET") != way("/users", "POST")

    def test_the_host_makes_no_difference(self):
        assert route("GET", "http://a.test:8080/x") == route("GET", "https://b.test/x")

    @pytest.mark.parametrize("url", ["http://a.test", "http://a.test?x=/y", "http://a.test#/y", ""])
    def test_a_url_without_a_path_is_the_method_alone(self, url):
        assert len(route("GET", url)) == 1

    @given(st.text(), st.text())
    def test_any_text_has_one(self, method, url):
        assert all(0 <= step < 2**32 for step in route(method, url))


class TestLearning:
    def test_a_route_that_is_known(self):
        routes = learnt(core="/repos/me/it", search="/search/code")
        assert bucket(routes, "/repos/me/it") == "core"
        assert bucket(routes, "/search/code?q=x") == "search"

    def test_the_last_word_counts(self):
        routes = learnt(old="/a", new="/a")
        assert bucket(routes, "/a") == "new"

    def test_another_method_is_not_known_by_it(self):
        assert bucket(learnt(core="/repos/me/it"), "/repos/me/it", "POST") is None

    def test_members_of_a_folder_speak_for_the_others_there(self):
        """A crawl of many pages does not learn each of them by a refusal."""
        routes = learnt(core="/repos/a/x /repos/b/x /repos/c/x", search="/search/code")
        assert bucket(routes, "/repos/d/y/issues") == "core"

    def test_too_few_of_them_do_not(self):
        routes = learnt(core="/repos/a/x /repos/b/x")
        assert ENOUGH == 3
        assert bucket(routes, "/repos/d/x") is None

    def test_nor_those_that_differ(self):
        routes = learnt(core="/api/repos/a /api/repos/b /api/repos/c", search="/api/search")
        assert bucket(routes, "/api/users") is None
        assert bucket(routes, "/api/repos/d") == "core"

    def test_if_all_that_is_known_of_a_folder_is_one_bucket_so_is_the_rest_of_it(self):
        routes = learnt(pages="/v1/one /v1/two /v1/three")
        assert bucket(routes, "/v1/four") == "pages"
        assert bucket(routes, "/v1/five/six") == "pages"
        assert bucket(routes, "/v1/one", "DELETE") is None

    def test_the_root_is_no_folder(self):
        """An API's parts stand side by side in it: a first search need not wait for them."""
        routes = learnt(core="/user /emojis /meta")
        assert bucket(routes, "/search") is None
        assert bucket(routes, "/search/code") is None

    def test_numbers_do_not_make_many_of_one(self):
        assert bucket(learnt(messages="/channels/1 /channels/2 /channels/3"), "/guilds/9") is None

    def test_a_bucket_that_has_another_name_now_is_no_other_bucket(self):
        routes = learnt(old="/a/1/x /a/b /a/c /a/d", new="/a/b /a/c /a/d")
        assert bucket(routes, "/a/e") == "new"

    def test_each_of_two_that_take_turns_on_one_route_says_nothing_of_others(self):
        routes = Routes()
        for name in ("me", "you") * 5:
            for path in ("/a", "/b", "/c"):
                routes.learn(way(path), name)
        assert bucket(routes, "/a") == "you"

    def test_what_is_known_has_bounds_and_the_oldest_goes_first(self):
        routes = Routes()
        for number in range(1000):
            routes.learn(way(f"/x{number}z/y{number}z"), "one")
        assert len(routes.routes) == MOST_ROUTES
        assert len(routes.folders) <= MOST_FOLDERS
        assert bucket(routes, "/x999z/y999z") == "one"

    @given(st.lists(st.tuples(st.text("/ab1?", max_size=12), st.sampled_from("xyz")), max_size=40))
    def test_what_was_just_learnt_is_known(self, answers):
        routes = Routes()
        for path, name in answers:
            routes.learn(route("GET", f"http://a.test/{path}"), name)
            assert routes.bucket_of(route("GET", f"http://a.test/{path}")) == name
