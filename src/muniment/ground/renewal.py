"""Files that somebody replaces while this process runs: a certificate and its key, or the certificates of a CA."""

import ssl
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import structlog

LOOK_SECONDS = 5.0
"""The files are looked at so often."""

log = structlog.get_logger("muniment.renewal")

T = TypeVar("T")
_State: TypeAlias = tuple[tuple[int, ...] | None, ...]


class Renewable(Generic[T]):
    """What was made of files, and is made anew when one of them has changed.

    ``make`` raises OSError or ValueError where they do not make sense, as at the first time. Later, what they were
    before stays in use, and after a second look the log has an error with ``to_do``, once: whoever replaces two files
    is between them for a moment. Several threads may ask. It may cross a fork.
    """

    def __init__(self, files: Sequence[Path], make: Callable[[], T], to_do: str) -> None:
        self._files, self._make, self._to_do = files, make, to_do
        self._made_of = self._state()
        self._refused: _State | None = None
        self._told: _State | None = None
        self._look_at = time.monotonic() + LOOK_SECONDS
        self._looking = threading.Lock()
        self._newest = make()

    def newest(self) -> T:
        """Without files, always the first."""
        if self._files and time.monotonic() >= self._look_at and self._looking.acquire(blocking=False):
            try:
                self._look_at = time.monotonic() + LOOK_SECONDS
                self._look()
            finally:
                self._looking.release()
        return self._newest

    def _look(self) -> None:
        state = self._state()
        if state in (self._made_of, self._told):
            return
        try:
            self._newest = self._make()
        except (OSError, ValueError) as error:
            if state == self._refused:
                self._told = state
                files = [str(file) for file in self._files]
                log.error("replaced files cannot be used", files=files, reason=str(error), to_do=self._to_do)  # noqa: TRY400 - no bug
            self._refused = state
        else:
            self._made_of, self._refused, self._told = state, None, None

    def _state(self) -> _State:
        return tuple(_state_of(file) for file in self._files)


TRUST_TO_DO = "put certificates of CAs there (PEM); until then the former ones are trusted"


def renewable_trust(ca_file: str) -> Renewable[ssl.SSLContext]:
    """For connections to a server whose certificate these CAs have signed; without a file, the system's. A CA that is
    not in the file any more is not trusted by new connections. Raises OSError.
    """
    files = [Path(ca_file)] if ca_file else []
    return Renewable(files, lambda: ssl.create_default_context(cafile=ca_file or None), TRUST_TO_DO)


def _state_of(file: Path) -> tuple[int, ...] | None:
    """Other after whatever was done to a file, or to a link that leads to it, even if its own date is kept."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
