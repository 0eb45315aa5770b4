"""The User-Agent field: rotation, and whose choice goes first."""

import copy
import json
import pickle
import socket
import subprocess
import sys
import threading
from collections import Counter

import pytest
import requests

from kreuz_sync.calls import Call, current
from kreuz_sync.retry import Retry
from kreuz_sync.sessions import Session
from kreuz_sync.stack import Stack
from kreuz_sync.useragent import DEFAULT_USER_AGENT, UserAgents
from kreuz_sync.version import __version__

from .fakes import FakeClock, ScriptedAdapter, prepared
from .loopback import redirect, sequence

AGENTS = ["a/1", "b/2", "c/3", "d/4"]


def stacked(agents, *answers, layers=()):
    """A stack with rotation on top, and the adapter that sees what it sends."""
    wire = ScriptedAdapter(*answers)
    return Stack([agents, *layers], wire), wire


def seen(wire):
    return [request.headers.get("User-Agent") for request in wire.requests]


def fresh(agent=DEFAULT_USER_AGENT, url="http://example.test/"):
    return prepared(url, headers={} if agent is None else {"User-Agent": agent})


class TestRotation:
    """One agent a call, one round after another."""

    def test_calls_take_turns(self):
        stack, wire = stacked(UserAgents(AGENTS))
        for _ in range(6):
            stack.send(fresh())
        assert seen(wire) == ["a/1", "b/2", "c/3", "d/4", "a/1", "b/2"]

    def test_threads_share_the_turns_exactly(self):
        """Eight threads, a hundred calls each, four agents: two hundred times each."""
        stack, wire = stacked(UserAgents(AGENTS))
        ready = threading.Barrier(8)

        def work():
            ready.wait(10)
            for _ in range(100):
                stack.send(fresh())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert Counter(seen(wire)) == dict.fromkeys(AGENTS, 200)

    def test_stacks_and_sessions_with_the_same_object_share_the_turns(self):
        agents = UserAgents(AGENTS)
        (first, one), (second, two) = stacked(agents), stacked(agents)
        for stack in (first, second, first, second):
            stack.send(fresh())
        assert (seen(one), seen(two)) == (["a/1", "c/3"], ["b/2", "d/4"])

    def test_the_retries_of_a_call_keep_its_agent(self):
        retry = Retry(2, clock=FakeClock())
        stack, wire = stacked(UserAgents(AGENTS), 503, 503, 200, layers=[retry])
        stack.send(fresh())
        stack.send(fresh())
        assert seen(wire) == ["a/1", "a/1", "a/1", "b/2"]

    def test_all_that_one_call_sends_has_one_agent(self):
        """Its redirect hops pass the layer one by one."""
        stack, wire = stacked(UserAgents(AGENTS))
        token = current.set(Call())
        try:
            stack.send(fresh())
            stack.send(fresh(url="http://other.test/"))
        finally:
            current.reset(token)
        assert seen(wire) == ["a/1", "a/1"]

    def test_an_empty_list_leaves_the_default(self):
        stack, wire = stacked(UserAgents([]))
        stack.send(fresh())
        assert seen(wire) == [DEFAULT_USER_AGENT]


class TestPerHost:
    """`per="host"`: a host always sees the same agent."""

    def test_a_host_keeps_its_agent_from_call_to_call(self):
        stack, wire = stacked(UserAgents(AGENTS, per="host"))
        for path in ("", "x", "y?z"):
            stack.send(fresh(url=f"http://example.test/{path}"))
        assert len(set(seen(wire))) == 1

    def test_hosts_differ(self):
        agents = UserAgents(AGENTS, per="host")
        assert {agents.of_host(f"h{number}.test") for number in range(50)} == set(AGENTS)

    def test_the_choice_depends_on_the_name_alone(self):
        """Another process, another run: the same agent, and nothing was remembered."""
        program = (
            "from kreuz_sync.useragent import UserAgents;"
            f"print(UserAgents({AGENTS}, per='host').of_host('example.test'))"
        )
        there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert there.stdout.strip() == UserAgents(AGENTS, per="host").of_host("example.test")


class TestTheCallersOwn:
    """Rotation never replaces what somebody chose."""

    @pytest.mark.parametrize("agent", ["me/1", b"me/1", "kreuz-sync/1 (me)", "python-requests/2 (a bot of mine)"])
    def test_it_goes_out_as_it_is(self, agent):
        stack, wire = stacked(UserAgents(AGENTS))
        stack.send(fresh(agent))
        assert seen(wire) == [agent]

    def test_it_takes_no_turn(self):
        stack, wire = stacked(UserAgents(AGENTS))
        for agent in (DEFAULT_USER_AGENT, "me/1", DEFAULT_USER_AGENT):
            stack.send(fresh(agent))
        assert seen(wire) == ["a/1", "me/1", "b/2"]

    @pytest.mark.parametrize(
        "agent", ["kreuz-sync/9.9", "python-requests/2.28.0", requests.utils.default_user_agent(), None]
    )
    def test_a_default_was_chosen_by_nobody(self, agent):
        stack, wire = stacked(UserAgents(AGENTS))
        stack.send(fresh(agent))
        assert seen(wire) == ["a/1"]

    def test_the_request_that_came_in_is_not_changed(self):
        stack, _ = stacked(UserAgents(AGENTS))
        request = fresh()
        stack.send(request)
        assert request.headers["User-Agent"] == DEFAULT_USER_AGENT


class TestInASession:
    """On the wire."""

    def test_exactly_one_field_is_sent(self, server):
        with Session(throttle=None, user_agents=AGENTS) as session:
            session.get(server.url("/"), headers={"user-agent": "me/1"})
            session.get(server.url("/"))
        assert [request.fields.all("User-Agent") for request in server.requests] == [["me/1"], ["a/1"]]

    def test_neither_the_session_nor_the_callers_dictionary_is_written_to(self, server):
        own = {"X-Own": "1"}
        with Session(throttle=None, user_agents=AGENTS) as session:
            session.get(server.url("/"), headers=own)
            assert session.headers["User-Agent"] == DEFAULT_USER_AGENT
        assert own == {"X-Own": "1"}

    def test_a_field_set_on_the_session_later_goes_before_rotation(self, server):
        with Session(throttle=None, user_agents=AGENTS) as session:
            session.headers["User-Agent"] = "me/2"
            session.get(server.url("/"))
        assert server.requests[0].fields["User-Agent"] == "me/2"

    def test_redirects_keep_the_agent_of_their_call(self, server, second_server):
        there = server.route("/there", redirect(second_server.url("/")))
        with Session(throttle=None, user_agents=AGENTS) as session:
            session.get(there)
            session.get(there)
        assert [one.fields["User-Agent"] for one in server.requests + second_server.requests] == ["a/1", "b/2"] * 2

    def test_retries_keep_it_too(self, server):
        page = server.route("/page", sequence(503, 503, 200))
        with Session(throttle=None, user_agents=AGENTS, retry=Retry(2, base=0)) as session:
            session.get(page)
        assert [one.fields["User-Agent"] for one in server.requests] == ["a/1"] * 3

    def test_without_rotation_the_package_names_itself(self, server):
        with Session(throttle=None) as session:
            session.get(server.url("/"))
        assert server.requests[0].fields["User-Agent"] == f"kreuz-sync/{__version__}"


class TestBundled:
    """The agents that come with the package."""

    def test_no_network_is_needed(self, monkeypatch, server):
        def no_network(*_):
            raise AssertionError("a socket was opened")

        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", no_network)
            patch.setattr(socket, "socket", no_network)
            session = Session(throttle=None, user_agents="rotate")
        with session:
            session.get(server.url("/"))
        assert server.requests[0].fields["User-Agent"] in UserAgents.browsers().agents

    def test_they_are_different_agents_of_browsers(self):
        agents = UserAgents.browsers().agents
        assert len(set(agents)) == len(agents) >= 5
        assert all(agent.startswith("Mozilla/5.0 (") for agent in agents)

    def test_they_can_stay_with_their_host(self):
        assert UserAgents.browsers(per="host") == UserAgents("rotate", per="host")

    def test_importing_the_package_does_not_load_them(self):
        program = "import json, sys, kreuz_sync; print(json.dumps('kreuz_sync.browsers' in sys.modules))"
        there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert json.loads(there.stdout) is False


class TestSetting:
    @pytest.mark.parametrize(
        ("agents", "kind", "words"),
        [
            ("me/1", TypeError, "a list of agents"),
            (b"me/1", TypeError, "a list of strings"),
            (7, TypeError, "a list of strings"),
            ([7], TypeError, r"user_agents\[0\]"),
            (["ok", ""], ValueError, r"user_agents\[1\]"),
            (["a\r\nX-Evil: 1"], ValueError, "cannot stand in a header field"),
            (["a\n"], ValueError, "cannot stand in a header field"),
            (["bot \u2603"], ValueError, "cannot stand in a header field"),
            ([" a/1"], ValueError, "begins"),
        ],
    )
    def test_agents_that_no_field_can_hold_are_refused(self, agents, kind, words):
        with pytest.raises(kind, match=words):
            UserAgents(agents)

    def test_another_unit_than_call_and_host_is_refused(self):
        with pytest.raises(ValueError, match="per='day'"):
            UserAgents(AGENTS, per="day")

    def test_any_iterable_will_do(self):
        assert UserAgents(agent for agent in AGENTS).agents == tuple(AGENTS)

    def test_a_pickle_starts_a_round_anew(self):
        agents = UserAgents(AGENTS)
        agents.take()
        again = pickle.loads(pickle.dumps(agents))
        assert again == agents and again.take() == "a/1"

    def test_a_copy_is_the_same_object(self):
        """Copies of a session go on taking turns with it."""
        agents = UserAgents(AGENTS)
        assert copy.copy(agents) is copy.deepcopy(agents) is agents

    def test_it_works_on_in_a_forked_child(self):
        """A thread of the parent may hold the lock at the moment of the fork."""
        agents = UserAgents(AGENTS)
        agents._turns._lock.acquire()
        agents._turns.after_fork()
        assert agents.take() == "a/1"
