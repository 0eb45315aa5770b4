"""The file in which a throttle's state outlives its process.

Nobody who sends a request waits for it: a thread writes it a few seconds after a change, and what is left
is written when a session is closed, and at the end of the program.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper

from kreuz_sync import fork
from kreuz_sync.clock import Clock

from .saved import Mark, NotOurs, Saved, floor_of, is_worth_writing, mark, merged, noted, read, restore, written
from .turns import Turns

try:
    import fcntl
except ImportError:  # Windows: of two processes that write at the same moment one may lose what it knew
    fcntl = None  # type: ignore[assignment]

FILE = "throttle.json"  # in the folder that was given
SAVE_S = 3.0  # after a change; what changes meanwhile is written with it
LOCK_S = 2.0  # for other processes to be done with the file
LOOK_S = 0.02
LARGEST = 16 * 2**20  # characters

_log = logging.getLogger("kreuz_sync.throttle")


class Keeper:
    """Reads the state of `turns` from a file, and writes it there.

    where: a folder, in which the file is FILE; or the file, if its name ends in ".json". It is
    replaced as a whole: who reads it, or is killed while writing it, never meets half of it. Several processes
    may share it: each joins what it knows with what is there. A damaged file is put aside; one that is
    something else is left alone, and nothing is saved. Trouble of a kind is logged once, and stops nobody.

    `_lock` guards what is to be done, `_writing` is held while the file is read or written. Both are asked for
    with no lock of the throttle held.
    """

    def __init__(self, where: str, turns: Turns, clock: Clock) -> None:
        self.path = where if where.endswith(".json") else os.path.join(where, FILE)
        self._turns = turns
        self._clock = clock
        self._is_ours = True
        self._told: set[str] = set()
        self._floors: dict[str, float] = {}  # when each was told, Unix seconds
        self._written: dict[str, Mark] = {}  # of the hosts in the file that were read or written here
        self._lock_file: TextIOWrapper | None = None
        self.after_fork()
        fork.renew_in_child(self)
        _keepers.add(self)

    def after_fork(self) -> None:
        """In a child: locks that nobody holds, and no thread that writes."""
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._now = threading.Event()  # ends the wait of the thread that writes
        self._is_due = self._is_changed = False
        if self._lock_file is not None:  # as long as it is open here, the parent cannot let go of it
            self._lock_file.close()

    # --- when ---------------------------------------------------------------------------

    def changed(self) -> None:
        """Have the state written soon."""
        with self._lock:
            self._is_changed = True
            if self._is_due:
                return
            self._is_due = True
            self._now.clear()
        try:
            threading.Thread(target=self._save_later, name="kreuz_sync-throttle-state", daemon=True).start()
        except RuntimeError:  # the program is at its end, and will save
            self._is_due = False

    def told_floor(self, name: str) -> None:
        """The host's floor was told now: it holds for a day from here, over however many runs."""
        self._floors[name] = self._clock.wall()

    def save(self) -> None:
        """Write what has changed, now."""
        with self._writing:  # also while another thread writes: then it is done when this returns
            with self._lock:
                is_changed, self._is_changed = self._is_changed, False
                self._now.set()
            if not is_changed or not self._is_ours:
                return
            try:
                with self._locked():
                    self._write()
            except OSError as error:
                self._is_changed = True  # for the next time
                self._tell("cannot be used", "what was learnt of the hosts may be lost with this process", error)

    def _save_later(self) -> None:
        self._now.wait(SAVE_S)
        with self._lock:
            self._is_due = False
        self.save()

    # --- the file -----------------------------------------------------------------------

    def load(self) -> None:
        """Have the hosts go on from where the file says they were."""
        known = self._read(self._clock.wall())
        wall = self._clock.wall()
        for name, saved in known.items():
            self._turns.learn(name, partial(restore, saved=saved, wall=wall))
            self._written[name] = mark(saved)
            floor = floor_of(saved, wall=wall)
            if floor is not None:
                self._floors[name] = floor[1]

    def _read(self, wall: float) -> dict[str, Saved]:
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read(LARGEST + 1)
            if len(text) > LARGEST:
                raise NotOurs("it is too large")
            return read(text, wall=wall)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._tell("cannot be used", "the throttle starts without what was saved", error)
        except NotOurs as error:
            self._is_ours = False
            self._tell("is left alone", "nothing is saved", error)
        except ValueError as error:
            self._tell("is damaged", "it is put aside, and the throttle starts without it", error)
            with contextlib.suppress(OSError):
                os.replace(self._place(), self._place() + ".damaged")
        return {}

    def _write(self) -> None:
        theirs = self._read(self._clock.wall())
        if not self._is_ours:
            return
        wall = self._clock.wall()  # after the file was read, so that both clocks are looked at together
        ours = self._noted(wall)
        self._replace(written(merged(ours, theirs, self._written, wall=wall)))
        self._written = {name: mark(saved) for name, saved in ours.items()}

    def _noted(self, wall: float) -> dict[str, Saved]:
        """What is worth writing of each host, and of those that something was written of."""
        floors = self._floors
        found = self._turns.each(lambda host, now: noted(host, now=now, wall=wall, floor_at=floors.get(host.name)))
        for name in set(floors) - found.keys():  # the throttle has forgotten them
            floors.pop(name, None)
        return {name: saved for name, saved in found.items() if name in self._written or is_worth_writing(saved)}

    def _replace(self, text: str) -> None:
        place = self._place()
        new = f"{place}.new" if fcntl is not None else f"{place}.{os.getpid()}.new"
        # For nobody else: which hosts somebody asks is his own affair.
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place)

    def _place(self) -> str:
        """Where the file is, if `path` is a link to it: the link stays one."""
        return os.path.realpath(self.path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file against other processes. Raises OSError if one of them does not let it go."""
        place = self._place()
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if fcntl is None:
            yield
            return
        with open(place + ".lock", "a", encoding="utf-8") as file:
            self._lock_file = file
            try:
                self._wait_for(file.fileno())
                yield
            finally:
                self._lock_file = None

    def _wait_for(self, file: int) -> None:
        for _ in range(round(LOCK_S / LOOK_S)):
            if _is_locked(file):
                return
            threading.Event().wait(LOOK_S)
        raise OSError("another process does not let go of it")

    def _tell(self, what: str, so: str, error: Exception) -> None:
        if what not in self._told:
            self._told.add(what)
            told = {"event": "pace_file_trouble", "path": self.path, "error_type": type(error).__name__}
            _log.warning("%s %s: %s (%s)", self.path, what, so, error, extra=told)


def _is_locked(file: int) -> bool:
    """Whether the file is locked now; also where there are no locks on its file system."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


@atexit.register
def _save_all() -> None:
    for keeper in list(_keepers):
        keeper.save()
