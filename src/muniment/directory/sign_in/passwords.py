"""Is this the password? argon2id (RFC 9106) behind one gate for all worker processes.

The gate bounds how many checks run at one time on the machine (memory and cores) and how many wait in this process, so
a flood of sign-ins is answered "too many" and never starves verification and refresh. Who waits takes turns: ``line``.
"""

import base64
import math
import os
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from muniment import locks
from muniment.clock import Instant
from muniment.directory.options import DirectoryOptions
from muniment.directory.sign_in.line import Asker, Line
from muniment.web.refusals import Overloaded

_NICENESS = 10
_POLL_SECONDS = 0.0005
_LONGEST_RETRY = 30
_CHANCE = secrets.SystemRandom().random
_TOO_MANY = "Too many sign-ins are under way."


class _Check(NamedTuple):
    stored: str | None
    password: str
    asked: Instant
    answer: "Future[bool]"


class PasswordGate:
    """Checks passwords, a few at a time over all processes that share ``folder``; at most ``queue`` wait in this one.

    Each of the ``slots`` (0: one fewer than the cores) is a locked file in the folder: the lock of a process that was
    killed is free at once. A process makes its own gate: it must not cross a fork. ``spread`` gives numbers from 0 to 1
    by which those who were sent away come back at different times.
    """

    def __init__(
        self,
        folder: Path,
        slots: int,
        queue: int,
        memory_kib: int,
        passes: int,
        *,
        spread: Callable[[], float] = _CHANCE,
    ) -> None:
        self._hasher = _hasher(memory_kib, passes)
        self._dummy = _dummy(memory_kib, passes)
        self._slots = _Slots(folder, slots or max(1, (os.cpu_count() or 2) - 1))
        self._line: Line[_Check] = Line(queue)
        self._changed = threading.Condition()
        self._seconds = 0.0
        self._spread = spread
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"password-{number}", daemon=True)
            for number in range(self._slots.count)
        ]
        for thread in self._threads:
            thread.start()

    def check(self, stored: str | None, password: str, asker: Asker, now: Instant) -> Future[bool]:
        """Check a password against a stored hash; None costs the same and is never right.

        Raises Overloaded, here or as the answer: when nobody who waits is heavier, or whoever waits has to make room.
        """
        check = _Check(stored, password, now, Future())
        with self._changed:
            if self._closed:
                raise Overloaded(_TOO_MANY, 1)
            leaves = self._line.join(asker, check, now)
            full = Overloaded(_TOO_MANY, self._retry_seconds())
            self._changed.notify()
        if leaves is check:
            raise full
        if leaves is not None and leaves.answer.set_running_or_notify_cancel():
            leaves.answer.set_exception(full)
        return check.answer

    def close(self) -> None:
        """Finish what was let in, then stop. Raises nothing when called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._slots.close()

    def _retry_seconds(self) -> int:
        # When those who wait now have been served: it is half as long again at most, so that not all come back at once.
        seconds = len(self._line) * self._seconds * (1 + self._spread() / 2)
        return min(max(1, math.ceil(seconds)), _LONGEST_RETRY)

    def _work(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while self._somebody_waits():
            began = time.perf_counter()
            # Whose turn it is is decided when there is a slot, not before.
            with self._slots.one():
                with self._changed:
                    turn = self._line.next()
                if turn is not None:
                    self._answer(*turn, began)

    def _somebody_waits(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._line))
            return len(self._line) > 0

    def _answer(self, asker: Asker, check: _Check, began: float) -> None:
        if not check.answer.set_running_or_notify_cancel():
            return
        right = _verified(self._hasher, check.stored or self._dummy, check.password) and check.stored is not None
        took = (time.perf_counter() - began) / self._slots.count
        with self._changed:
            self._seconds = took if not self._seconds else 0.8 * self._seconds + 0.2 * took
            self._line.note(asker, right, check.asked)
        check.answer.set_result(right)


def hash_password(password: str, *, memory_kib: int = 19_456, passes: int = 2) -> str:
    """Hash a new password for storing, outside any gate: for the command line."""
    return _hasher(memory_kib, passes).hash(_normal(password))


def hash_new(password: str, options: DirectoryOptions) -> str:
    """Hash a new password or secret for storing as the settings say."""
    return hash_password(password, memory_kib=options.hash_memory_kib, passes=options.hash_passes)


class _Slots:
    """The files whose locks are the right to hash; a thread holds one while it works.

    Whoever wants one waits for it at the turnstile, one process at a time: a process that has just given its slot back
    comes behind those who wait, however fast it asks again.
    """

    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.count = count
        self._turnstile, *self._files = (
            locks.open_file(folder / name) for name in ("turnstile", *map(str, range(count)))
        )
        # One open file serves all threads here, and its lock is the process's: this tells the threads apart.
        self._here = [threading.Lock() for _ in range(count)]
        self._at_turnstile = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        number = self._taken()
        try:
            yield
        finally:
            locks.release(self._files[number])
            self._here[number].release()

    def close(self) -> None:
        for file in (self._turnstile, *self._files):
            os.close(file)

    def _taken(self) -> int:
        with self._at_turnstile:
            locks.take(self._turnstile)
            try:
                while True:
                    for number in range(self.count):
                        if self._took(number):
                            return number
                    time.sleep(_POLL_SECONDS)
            finally:
                locks.release(self._turnstile)

    def _took(self, number: int) -> bool:
        if not self._here[number].acquire(blocking=False):
            return False
        try:
            locks.take(self._files[number], wait=False)
        except locks.Held:
            self._here[number].release()
            return False
        return True


def _hasher(memory_kib: int, passes: int) -> PasswordHasher:
    return PasswordHasher(time_cost=passes, memory_cost=memory_kib, parallelism=1)


def _verified(hasher: PasswordHasher, stored: str, password: str) -> bool:
    try:
        return hasher.verify(stored, _normal(password))
    except (VerificationError, InvalidHashError):
        return False


def _normal(password: str) -> bytes:
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _dummy(memory_kib: int, passes: int) -> str:
    salt, digest = (base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (16, 32))
    return f"$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${digest}"
