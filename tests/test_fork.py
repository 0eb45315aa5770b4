"""What is made anew in the child of a fork."""

import os

import pytest

from kreuz_sync import fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_one_that_fails_does_not_keep_the_others_from_being_renewed():
    class Thing:
        def __init__(self, fails):
            self.fails, self.renewed = fails, False

        def after_fork(self):
            if self.fails:
                raise TypeError("not picklable")
            self.renewed = True

    things = [Thing(fails=number % 2 == 0) for number in range(6)]
    for thing in things:
        fork.renew_in_child(thing)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(thing.renewed for thing in things if not thing.fails) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not any(thing.renewed for thing in things)
