"""Is this the password? argon2id (RFC 9106) behind one gate for all worker processes.

The gate bounds how many checks run at one time on the machine (memory and cores) and how many wait in this process, so
a flood of sign-ins is answered "too many" and never starves verification and refresh.
"""

import base64
import fcntl
import os
import queue as queues
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from muniment.web.refusals import Overloaded

T = TypeVar("T")

_NICENESS = 10
_POLL_SECONDS = 0.002


class Gate:
    """Hashes and checks passwords, a few at a time over all processes that share ``folder``.

    Each of the ``slots`` (0: one fewer than the cores) is a locked file in the folder: the lock of a process that was
    killed is free at once. A process makes its own gate: it must not cross a fork.
    """

    def __init__(self, folder: Path, slots: int, queue: int, memory_kib: int, passes: int) -> None:
        self._hasher = _hasher(memory_kib, passes)
        self._dummy = _dummy(memory_kib, passes)
        self._slots = _Slots(folder, slots or max(1, (os.cpu_count() or 2) - 1))
        self._jobs: queues.SimpleQueue[Callable[[], None] | None] = queues.SimpleQueue()
        self._room = threading.Semaphore(queue)
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"password-{number}", daemon=True)
            for number in range(self._slots.count)
        ]
        for thread in self._threads:
            thread.start()

    def check(self, stored: str | None, password: str) -> Future[bool]:
        """Check a password against a stored hash; None costs the same and is never right. Raises Overloaded."""
        return self._enter(lambda: _verified(self._hasher, stored or self._dummy, password) and stored is not None)

    def hash(self, password: str) -> Future[str]:
        """Hash a new password for storing. Raises Overloaded."""
        return self._enter(lambda: self._hasher.hash(_normal(password)))

    def close(self) -> None:
        """Finish what was let in, then stop. Raises nothing when called twice."""
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._slots.close()

    def _enter(self, work: Callable[[], T]) -> Future[T]:
        if self._closed or not self._room.acquire(blocking=False):
            raise Overloaded("Too many sign-ins are under way.", 1)
        future: Future[T] = Future()

        def job() -> None:
            with self._slots.one():
                self._room.release()
                _settle(future, work)

        self._jobs.put(job)
        return future

    def _work(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while (job := self._jobs.get()) is not None:
            job()


def hash_now(password: str, *, memory_kib: int = 19_456, passes: int = 2) -> str:
    """Hash a new password for storing, outside any gate: for the command line."""
    return _hasher(memory_kib, passes).hash(_normal(password))


class _Slots:
    """The files whose locks are the right to hash; a thread holds one while it works."""

    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.count = count
        self._files = [
            os.open(folder / f"{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for number in range(count)
        ]
        # One open file serves all threads here, and its lock is the process's: this tells the threads apart.
        self._here = [threading.Lock() for _ in range(count)]

    @contextmanager
    def one(self) -> Iterator[None]:
        number = self._taken()
        try:
            yield
        finally:
            fcntl.flock(self._files[number], fcntl.LOCK_UN)
            self._here[number].release()

    def close(self) -> None:
        for file in self._files:
            os.close(file)

    def _taken(self) -> int:
        while True:
            for number in range(self.count):
                if self._took(number):
                    return number
            time.sleep(_POLL_SECONDS)

    def _took(self, number: int) -> bool:
        if not self._here[number].acquire(blocking=False):
            return False
        try:
            fcntl.flock(self._files[number], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._here[number].release()
            return False
        return True


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
        future.set_exception(error)


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
