"""Which files are within a file?"""

import lzma
import re
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from typing import IO, BinaryIO

from muniment.repository.store.extraction.findings import (
    MOST_KEPT,
    Extracted,
    KeptFile,
    Limits,
    Unreadable,
    Unsupported,
)

_MOST_FILES = 10_000
_MOST_NOTES = 5
_SHARE_OF_TIME = 0.6
"""No further file is begun after this share of the seconds, so that the text found is kept."""

_PIECE = 1 << 16
_BY_SYSTEMS = re.compile(r"(?:.*/)?(?:__MACOSX/.*|\.DS_Store|Thumbs\.db)", re.DOTALL)

_DAMAGED = (
    *(EOFError, OSError, ValueError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
)
"""Libraries raise these for a member that is damaged, locked, or packed in an unknown way."""

Entry = tuple[str, Callable[[], AbstractContextManager[IO[bytes]]]]

ReadFile = Callable[[BinaryIO, str, str, "InnerFiles"], Extracted]
"""Takes the file's name and media type.

Raises Unreadable, Unsupported.
"""


class InnerFiles:
    """The files within one file, at all depths. They unpack to ``loaded_bytes``, and are ``_MOST_FILES``, at most.
    ``kept`` has those that no reader here reads, within ``kept_bytes``.
    """

    def __init__(self, limits: Limits, read: ReadFile) -> None:
        self.limits = limits
        self.kept: list[KeptFile] = []
        self._read = read
        self._levels_left = limits.depth
        self._files_left = _MOST_FILES
        self._bytes_left = limits.loaded_bytes
        self._kept_bytes_left = limits.kept_bytes
        self._end = time.monotonic() + _SHARE_OF_TIME * limits.seconds
        self._notes: list[str] = []

    @property
    def note(self) -> str:
        more = len(self._notes) - _MOST_NOTES
        return " ".join([*self._notes[:_MOST_NOTES], *([f"So were {more} more."] if more > 0 else [])])

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Raises Unreadable if that is deeper than is read."""
        if self._levels_left < 1:
            raise Unreadable("The file is packed within packed files deeper than is read.")
        self._levels_left -= 1
        try:
            yield
        finally:
            self._levels_left += 1

    def text_of(self, name: str, content: bytes, media_type: str = "", what: str = "file") -> str:
        """If the text is empty, a note says why, unless the file is kept; ``what`` is its word for the file."""
        if time.monotonic() > self._end:
            self._leave_out(name, what, "The time for the files within the file is over.")
            return ""
        try:
            with self.deeper():
                result = self._read(BytesIO(content), name, media_type, self)
        except (MemoryError, KeyboardInterrupt):
            raise
        except Unsupported as refusal:
            if not self._keep(name, content):
                self._leave_out(name, what, str(refusal))
        except Unreadable as refusal:
            self._leave_out(name, what, str(refusal))
        except BaseException as error:  # noqa: BLE001 - a library may raise anything, one in Rust no mere Exception
            self._leave_out(name, what, f"Its reader failed: {type(error).__name__}.")
        else:
            if not result.scanned or not self._keep(name, content):
                return result.text
        return ""

    def texts_of(self, entries: Iterable[Entry]) -> str:
        """Return names and texts; a note says what was left out, and why."""
        pieces: list[str] = []
        for name, open_entry in entries:
            if _BY_SYSTEMS.fullmatch(name):
                continue
            if self._files_left < 1 or time.monotonic() > self._end:
                self._notes.append(f"The files from {name[:100]!r} on were not read: there are too many.")
                break
            self._files_left -= 1
            pieces.append(name)
            try:
                with open_entry() as stream:
                    content = self._take(stream)
            except _DAMAGED as error:
                locked = isinstance(error, RuntimeError) and "encrypted" in str(error)
                reason = "It is encrypted." if locked else "It is damaged, or packed in a way that is not read."
                self._leave_out(name, "file", reason)
                continue
            if content is None:
                self._notes.append(f"The files from {name[:100]!r} on were not read: they unpack to too many bytes.")
                break
            if text := self.text_of(name, content).strip() if content else "":
                pieces.append(text)
        return "\n".join(pieces)

    def _take(self, stream: IO[bytes]) -> bytes | None:
        content = BytesIO()
        while piece := stream.read(_PIECE):
            self._bytes_left -= len(piece)
            if self._bytes_left < 0:
                return None
            content.write(piece)
        return content.getvalue()

    def _keep(self, name: str, content: bytes) -> bool:
        if len(self.kept) >= MOST_KEPT or len(content) > self._kept_bytes_left:
            return False
        self._kept_bytes_left -= len(content)
        self.kept.append(KeptFile(name[-200:], content))
        return True

    def _leave_out(self, name: str, what: str, reason: str) -> None:
        self._notes.append(f"The {what} {name[:100]!r} was not read: {reason}")
