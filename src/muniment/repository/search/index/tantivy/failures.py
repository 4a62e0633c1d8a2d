"""What happens when the index engine fails?"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from muniment.repository.refusals import BadQuery, IndexUnavailable

_ROOM = 64 << 20
_REFUSALS = {
    "exceeded max expansions": "Too many words begin as the parts of a joined word do: write more of them.",
    "exceeds size limit": "A text is too long to be sought by a part of it, or has too many wildcards.",
}

log = structlog.get_logger("muniment.repository.index")


@contextmanager
def as_refusals(what: str) -> Iterator[None]:
    """A panic is no Exception, only a BaseException."""
    try:
        yield
    except (ValueError, OSError) as error:
        for sign, sentence in _REFUSALS.items():
            if sign in str(error):
                raise BadQuery(sentence) from error
        log.exception("index engine failed", what=what)
        raise IndexUnavailable(f"The search index is not available: {what}.") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        log.exception("index engine panicked", what=what)
        raise IndexUnavailable(f"The search index is not available: {what}.") from error


def check_room(folder: Path) -> None:
    """Check for the engine, which does not say why a commit failed: a document would be blamed for the full disk."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        os.posix_fallocate(probe.fileno(), 0, _ROOM)
