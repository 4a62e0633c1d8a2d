"""What does this file say? Each file is read in a process of its own that can do nothing but read it."""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.db import Database
    from muniment.repository.extraction.loop import Contents
    from muniment.repository.options import RepositoryOptions


def run(database: "Database", store: "Contents", options: "RepositoryOptions", stop: threading.Event) -> None:
    """Read files from the queue of all repositories until told to stop; a file under way then goes back to it."""
    # Imported here: the worker process lives in this package too, and has no use for a database.
    from muniment.repository.extraction import loop

    loop.run(database, store, options, stop)
