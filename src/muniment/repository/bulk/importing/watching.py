"""When has a folder changed? The system says so, or the folder is polled."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import watchfiles

_BURST_MILLISECONDS, _PAUSE_MILLISECONDS = 1600, 200
_TICK_MILLISECONDS = 1000


class FolderGone(Exception):
    """It is gone, or the system cannot examine it."""


def passes(folder: Path, is_due: Callable[[], bool], polls: Callable[[], None]) -> Iterator[None]:
    """Yield when the folder is to be imported: at first, and after each burst of changes.

    A burst ends after a fifth of a second without a change, or after 1.6 seconds. After each second without one,
    ``is_due`` decides. A folder that takes the place of ``folder``, as after a mount, is watched. If the system cannot
    watch all folders in it, ``polls`` is called, and the folder is polled.

    Raises FolderGone, OSError if the folder cannot be polled either, and KeyboardInterrupt for Ctrl-C.
    """
    polling = None
    while True:
        identity = _identity(folder)
        bursts = watchfiles.watch(
            folder,
            watch_filter=None,
            debounce=_BURST_MILLISECONDS,
            step=_PAUSE_MILLISECONDS,
            rust_timeout=_TICK_MILLISECONDS,
            yield_on_timeout=True,
            force_polling=polling,
            ignore_permission_denied=True,
        )
        first = True
        try:
            with closing(bursts):
                for changes in bursts:
                    if _identity(folder) != identity:
                        break
                    # What changed before the watch began is found by the first pass.
                    if first or changes or is_due():
                        yield
                    first = False
        except OSError:
            if polling:
                raise
            polling = True
            polls()


def _identity(folder: Path) -> tuple[int, int]:
    try:
        about = os.stat(folder)
    except FileNotFoundError as error:
        raise FolderGone(f"{folder} is gone") from error
    except OSError as error:  # such as a mount whose server does not answer any more
        raise FolderGone(f"{folder} cannot be looked at: {error.strerror}") from error
    return about.st_dev, about.st_ino
