"""Run one command: ``muniment`` and ``python -m muniment`` do the same."""

import gc

# What is loaded stays until the end, so the garbage collector need not look at it. ``main`` starts it again.
gc.disable()

from muniment.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
