"""Return free memory to the system when a process has little to do."""

import ctypes
import gc
import sys
import threading
import time

_M_ARENA_MAX, _M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -8, -1, -3
_KEPT_BYTES = 32 << 20
_LOOK_SECONDS = 2.0
_WORTH_SECONDS = 0.2
_QUIET = 0.1


def prepare_forks() -> None:
    """Call it while the process has only one thread.

    All threads then share one arena of glibc: ``malloc_trim`` does not return the free memory at the top of another,
    where a password check leaves 19 MiB.

    A process then keeps up to 64 MiB of free memory until it is quiet (``start_trimming``), not only after it has freed
    a large piece.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    library = _library()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, 2 * _KEPT_BYTES)
        library.malloc_trim(0)


def start_trimming() -> None:
    """A thread trims once the process uses less than a tenth of a core; none without glibc."""
    library = _library()
    if library is not None:
        threading.Thread(target=_trim_when_quiet, args=(library,), name="memory", daemon=True).start()


def _trim_when_quiet(library: ctypes.CDLL) -> None:
    used_at_last_trim = used_seconds = time.process_time()
    while True:
        time.sleep(_LOOK_SECONDS)
        used_before, used_seconds = used_seconds, time.process_time()
        if used_seconds - used_at_last_trim < _WORTH_SECONDS or used_seconds - used_before > _QUIET * _LOOK_SECONDS:
            continue
        gc.collect()
        library.malloc_trim(0)
        used_at_last_trim = used_seconds = time.process_time()


def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    glibc = sys.platform == "linux" and hasattr(library, "mallopt") and hasattr(library, "malloc_trim")
    return library if glibc else None
