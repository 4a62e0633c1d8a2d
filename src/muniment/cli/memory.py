"""What a process has freed goes back to the system once it has gone quiet."""

import ctypes
import gc
import sys
import threading
import time

_M_ARENA_MAX = -8
_ARENAS = 2
_LOOK_SECONDS = 2.0
_WORTH_SECONDS = 0.2
_QUIET = 0.1


def spare() -> None:
    """Keep what this process holds near to what it uses, from now on and until it ends.

    The C library gives each thread an arena of its own, and returns next to nothing of what was freed in one: two are
    enough where Python's lock is held most of the time. Whatever a burst of work has left behind is returned once the
    process uses less than a tenth of a core. Elsewhere than on glibc this does nothing.
    """
    library = ctypes.CDLL(None)
    if sys.platform != "linux" or not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        return
    library.mallopt(_M_ARENA_MAX, _ARENAS)
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
