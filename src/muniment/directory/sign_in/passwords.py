"""Check passwords with argon2id (RFC 9106), behind one gate for all worker processes (decision 0025).

It limits how many checks run on the machine, because each takes much memory and a core, and how many wait in this
process, in turns (``line``).
"""

import base64
import hashlib
import hmac
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

from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import BadAttribute
from muniment.directory.sign_in.line import Asker, Line
from muniment.ground import locks
from muniment.ground.clock import Instant
from muniment.ground.refusals import Overloaded

_NICENESS = 10
_POLL_SECONDS = 0.0005
_LONGEST_RETRY = 30
_NEW_AT_ONCE = 2
_RANDOM = secrets.SystemRandom().random
_SECRET = 32
_KEY = 16
_KEYED = "$blake2b$"
_TOO_MANY = "Too many sign-ins are under way."


class _Check(NamedTuple):
    password_hash: str | None
    password: str
    sent_at: Instant
    answer: "Future[bool]"


class PasswordGate:
    """Checks passwords: ``slots`` at one time over all processes that share ``folder``, and at most ``queue`` wait
    here.

    ``slots`` 0 means one fewer than the machine has cores, but at least one. A slot is a file, locked during a check: a
    killed process frees its slots at once. Each process makes its own gate, as threads do not survive a fork.
    ``spread`` gives random numbers from 0 to 1, so that refused callers do not all come back at one time.
    """

    def __init__(
        self,
        folder: Path,
        slots: int,
        queue: int,
        memory_kib: int,
        passes: int,
        *,
        spread: Callable[[], float] = _RANDOM,
    ) -> None:
        self._hasher = _hasher(memory_kib, passes)
        self._dummy = _dummy(memory_kib, passes)
        self._slots = _Slots(folder, slots or max(1, (os.cpu_count() or 2) - 1))
        self._line: Line[_Check] = Line(queue)
        self._changed = threading.Condition()
        self._seconds_per_check = 0.0
        self._spread = spread
        self._hashing = threading.BoundedSemaphore(_NEW_AT_ONCE)
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"password-{number}", daemon=True)
            for number in range(self._slots.count)
        ]
        for thread in self._threads:
            thread.start()

    def check(self, password_hash: str | None, password: str, asker: Asker, now: Instant) -> Future[bool]:
        """Without a hash, the check takes as long, and the password is not right. Raises Overloaded if the line is full
        and no other check leaves, or the gate is closed; the future, if its check has to make room. A secret that
        ``new_secret`` made needs no turn and no slot.
        """
        if password_hash is not None and is_made(password_hash):
            answer: Future[bool] = Future()
            answer.set_result(is_made_of(password_hash, password))
            return answer
        check = _Check(password_hash, password, now, Future())
        with self._changed:
            if self._closed:
                raise Overloaded(_TOO_MANY, 1)
            leaving_check = self._line.join(asker, check, now)
            full = Overloaded(_TOO_MANY, self._retry_seconds())
            self._changed.notify()
        if leaving_check is check:
            raise full
        if leaving_check is not None and leaving_check.answer.set_running_or_notify_cancel():
            leaving_check.answer.set_exception(full)
        return check.answer

    def hash_new(self, password: str) -> str:
        """It waits for the slot: call it in a thread, never in the event loop. Raises Overloaded if two other threads
        of this process are at it, or the gate is closed; BadAttribute as ``check_new``.
        """
        if self._closed or not self._hashing.acquire(blocking=False):
            raise Overloaded("Too many new passwords are being set.", 1)
        try:
            with self._slots.hold():
                return self._hasher.hash(_normalise(check_new(password)))
        finally:
            self._hashing.release()

    def close(self) -> None:
        """Finish what waits, then stop. A second call does nothing."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        # A thread that makes a new hash uses the files of the slots, too. After this no further thread can begin.
        for _ in range(_NEW_AT_ONCE):
            self._hashing.acquire()
        self._slots.close()

    def _retry_seconds(self) -> int:
        # The time until the waiting checks are done, and up to half as much again, so that not all callers come back at
        # one time.
        seconds = len(self._line) * self._seconds_per_check * (1 + self._spread() / 2)
        return min(max(1, math.ceil(seconds)), _LONGEST_RETRY)

    def _work(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while self._wait_for_check():
            start = time.perf_counter()
            # The next check is chosen when a slot is free, not before.
            with self._slots.hold():
                with self._changed:
                    turn = self._line.next()
                if turn is not None:
                    self._answer(*turn, start)

    def _wait_for_check(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._line))
            return len(self._line) > 0

    def _answer(self, asker: Asker, check: _Check, start: float) -> None:
        if not check.answer.set_running_or_notify_cancel():
            return
        matches = _verify(self._hasher, check.password_hash or self._dummy, check.password)
        is_right = matches and check.password_hash is not None
        seconds_per_check = (time.perf_counter() - start) / self._slots.count
        with self._changed:
            self._seconds_per_check = (
                seconds_per_check
                if not self._seconds_per_check
                else 0.8 * self._seconds_per_check + 0.2 * seconds_per_check
            )
            self._line.note(asker, is_right, check.sent_at)
        check.answer.set_result(is_right)


def check_new(password: str) -> str:
    """Raises BadAttribute for one that nobody can see."""
    if not any(unicodedata.category(character)[0] in "LMNPS" for character in password):
        raise BadAttribute("A password is not empty, and not made of blanks alone.")
    return password


def new_secret() -> tuple[str, str]:
    """A secret for a program, and what is stored instead of a slow hash: a digest with a key of its own.

    Nobody guesses 256 random bits, however many digests a second they can try.
    """
    secret = secrets.token_urlsafe(_SECRET)
    return secret, _keyed(secret, secrets.token_hex(_KEY))


def is_made(secret_hash: str) -> bool:
    """Whether it is what is stored of a secret that ``new_secret`` made."""
    return secret_hash.startswith(_KEYED)


def is_made_of(secret_hash: str, secret: str) -> bool:
    """Whether this is the secret of which this is stored, by ``new_secret``: it takes no turn at the gate."""
    return is_made(secret_hash) and hmac.compare_digest(_keyed(secret, secret_hash.split("$")[2]), secret_hash)


def hash_password(password: str, *, memory_kib: int = 19_456, passes: int = 2) -> str:
    """Without a slot of the gate: for the command line only. A server calls ``PasswordGate.hash_new``.

    Raises BadAttribute.
    """
    return _hasher(memory_kib, passes).hash(_normalise(check_new(password)))


def hash_new(password: str, options: DirectoryOptions) -> str:
    """Raises BadAttribute."""
    return hash_password(password, memory_kib=options.hash_memory_kib, passes=options.hash_passes)


def _keyed(secret: str, key: str) -> str:
    digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=key.encode(), digest_size=32)
    return f"{_KEYED}{key}${digest.hexdigest()}"


class _Slots:
    """The gate's slots: files, one of which a thread locks while it hashes.

    Whoever waits for one holds the turnstile, another file, so that a thread that frees a slot and needs one again does
    not overtake.
    """

    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.count = count
        self._turnstile, *self._files = (
            locks.open_file(folder / name) for name in ("turnstile", *map(str, range(count)))
        )
        # A file's lock belongs to the whole process. These locks keep the threads of the process apart.
        self._thread_locks = [threading.Lock() for _ in range(count)]
        self._turnstile_lock = threading.Lock()

    @contextmanager
    def hold(self) -> Iterator[None]:
        number = self._take()
        try:
            yield
        finally:
            locks.release(self._files[number])
            self._thread_locks[number].release()

    def close(self) -> None:
        for file in (self._turnstile, *self._files):
            os.close(file)

    def _take(self) -> int:
        with self._turnstile_lock:
            locks.take(self._turnstile)
            try:
                while True:
                    for number in range(self.count):
                        if self._try(number):
                            return number
                    time.sleep(_POLL_SECONDS)
            finally:
                locks.release(self._turnstile)

    def _try(self, number: int) -> bool:
        if not self._thread_locks[number].acquire(blocking=False):
            return False
        try:
            locks.take(self._files[number], wait=False)
        except locks.Held:
            self._thread_locks[number].release()
            return False
        return True


def _hasher(memory_kib: int, passes: int) -> PasswordHasher:
    return PasswordHasher(time_cost=passes, memory_cost=memory_kib, parallelism=1)


def _verify(hasher: PasswordHasher, password_hash: str, password: str) -> bool:
    try:
        return hasher.verify(password_hash, _normalise(password))
    except (VerificationError, InvalidHashError):
        return False


def _normalise(password: str) -> bytes:
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _dummy(memory_kib: int, passes: int) -> str:
    salt, digest = (base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (16, 32))
    return f"$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${digest}"
