"""Other people's servers beside which we are measured: installed on demand into a cache folder, started, asked.

Nothing of them is kept in the project. Where a tool or a registry is missing a peer raises Missing, and the rows that
need it say so.
"""

import os
from collections.abc import Callable
from pathlib import Path

from muniment.ground import locks


class Missing(Exception):
    """A peer cannot be had on this machine; the message says why."""


def cache() -> Path:
    """The folder that keeps what was downloaded: ``MUNIMENT_BENCH_CACHE``, otherwise ``var/bench`` in the project."""
    chosen = os.environ.get("MUNIMENT_BENCH_CACHE")
    folder = Path(chosen) if chosen else Path(__file__).parents[2] / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def installed(name: str, install: Callable[[Path], None]) -> Path:
    """Give the folder ``name`` of the cache, filled by ``install`` unless an earlier run has filled it.

    Raises Missing when it cannot be filled.
    """
    folder = cache() / name
    done = folder / ".installed"
    with locks.hold(cache() / f".{name}.lock"):  # several processes of the tests may want it
        if not done.exists():
            print(f"    installing {name} (once)", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                install(folder)
            except (RuntimeError, OSError) as error:
                raise Missing(f"{name} could not be installed: {error}") from error
            done.touch()
    return folder
