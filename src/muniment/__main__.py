"""Run one command: ``muniment`` and ``python -m muniment`` do the same."""

import gc

# The modules that are loaded here stay until the end, so the garbage collector need not search them for garbage.
# ``main`` starts the collector again.
gc.disable()

from muniment.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
