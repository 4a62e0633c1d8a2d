"""What to do when the index engine fails: log it, and say no in our own words."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from muniment.repository.refusals import IndexUnavailable

log = structlog.get_logger("muniment.repository.fulltext")


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn the engine's failures into IndexUnavailable, its panics too, which are no Exceptions."""
    try:
        yield
    except (ValueError, OSError) as error:
        log.exception("index engine failed", what=what)
        raise IndexUnavailable(f"The search index is not available: {what}.") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        log.exception("index engine panicked", what=what)
        raise IndexUnavailable(f"The search index is not available: {what}.") from error
