"""What a process has freed goes back to the system once it has gone quiet."""

import ctypes
import gc
import sys
import threading
import time

_M_ARENA_MAX = -8
_LOOK_SECONDS = 2.0
_WORTH_SECONDS = 0.2
_QUIET = 0.1


def settle() -> None:
    """Make this process small before it forks others; to be called while it has but one thread.

    All of them then allocate from one arena: the C library would give each thread one of its own, and of any but the
    first it never returns the end, where a password check leaves its 19 MiB. Python's lock is held most of the time, so
    few threads ever ask at once. What is free is returned, and the collector keeps away from what is left and shared.
    """
    gc.collect()
    gc.freeze()
    library = _library()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.malloc_trim(0)


def spare() -> None:
    """Keep what this process holds near to what it uses, until it ends.

    Whatever a burst of work has left behind is returned once the process uses less than a tenth of a core. Elsewhere
    than on glibc this does nothing.
    """
    library = _library()
    if library is not None:
        threading.Thread(target=_keep_sparing, args=(library,), name="memory", daemon=True).start()


def _keep_sparing(library: ctypes.CDLL) -> None:
    spared = seen = time.process_time()
    while True:
        time.sleep(_LOOK_SECONDS)
        before, seen = seen, time.process_time()
        if seen - spared < _WORTH_SECONDS or seen - before > _QUIET * _LOOK_SECONDS:
            continue
        gc.collect()
        library.malloc_trim(0)
        spared = seen = time.process_time()


def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    glibc = sys.platform == "linux" and hasattr(library, "mallopt") and hasattr(library, "malloc_trim")
    return library if glibc else None
