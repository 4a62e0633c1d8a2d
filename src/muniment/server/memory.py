"""Return freed memory to the system once a process has gone quiet."""

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
    """Make this process small before it forks others. Call it while the process has one thread only.

    From then on all threads allocate from one arena. By default glibc gives each thread an arena of its own. But glibc
    returns the top of an arena only for the first arena, and a password check leaves 19 MiB there. One arena costs
    little time: Python's lock lets few threads allocate at once. Free memory is returned now, and the garbage collector
    no longer touches what remains, so that the forked processes share it.
    """
    gc.collect()
    gc.freeze()
    library = _library()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.malloc_trim(0)


def spare() -> None:
    """Return this process's free memory to the system from now on, until it ends.

    After a burst of work it returns what is free as soon as the process uses less than a tenth of a core. Without glibc
    this does nothing.
    """
    library = _library()
    if library is not None:
        threading.Thread(target=_trim_when_quiet, args=(library,), name="memory", daemon=True).start()


def _trim_when_quiet(library: ctypes.CDLL) -> None:
    used_at_last_trim = used = time.process_time()
    while True:
        time.sleep(_LOOK_SECONDS)
        used_before, used = used, time.process_time()
        if used - used_at_last_trim < _WORTH_SECONDS or used - used_before > _QUIET * _LOOK_SECONDS:
            continue
        gc.collect()
        library.malloc_trim(0)
        used_at_last_trim = used = time.process_time()


def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    glibc = sys.platform == "linux" and hasattr(library, "mallopt") and hasattr(library, "malloc_trim")
    return library if glibc else None
